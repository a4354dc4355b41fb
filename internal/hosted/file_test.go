package hosted

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/worker"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	w, err := worker.New(natstest.Connect(t, natstest.Start(t)), worker.Config{})
	require.NoError(t, err)
	require.NoError(t, Builtin().Register(w))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(parse(t, `{"builtin":"add"}`).Register(w)), "a worker has each tool once")
	require.NoError(t, parse(t, `{"builtin":"add","name":"plus"}`).Register(w))
}

// A built-in tool is told the attempt, so that fail can succeed at last.
func TestBuiltinKnowsItsAttempt(t *testing.T) {
	t.Parallel()
	f := parse(t, `{"builtin":"fail"}`)
	_, err := invoke(context.Background(), f, `{"until_attempt":2}`, worker.Info{Attempt: 1})
	require.Equal(t, fault.ToolFailed, fault.CodeOf(err))
	out, err := invoke(context.Background(), f, `{"until_attempt":2}`, worker.Info{Attempt: 2})
	require.NoError(t, err)
	require.Equal(t, `{"result":2}`, string(out.Body))
}

func ExampleParse() {
	_, err := Parse([]byte(`{"tools": [{"builtin": "arithmetik"}, {"name": "list", "exec": {"argv": ["ls", "{{dir}}"]}}]}`), "/etc")
	fmt.Println(err)
	// Output:
	// /tools/0/builtin: there are no built-in tools "arithmetik" (did you mean "arithmetic"?)
	// /tools/1/exec/argv/1: the input schema has no property "dir" (add it: "inputSchema": {"type": "object", "properties": {…}, "required": […]})
}
