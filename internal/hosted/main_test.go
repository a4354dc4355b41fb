package hosted

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).Start.func1"))
}

// parse reads a file that has to be valid, and closes it at the end.
func parse(t *testing.T, tools ...string) *File {
	t.Helper()
	f, err := Parse([]byte(`{"tools":[`+strings.Join(tools, ",")+`]}`), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// invoke calls the first tool of a file.
func invoke(ctx context.Context, f *File, args string, info worker.Info) (worker.Output, error) {
	return f.tools[0].call(ctx, json.RawMessage(args), info)
}

// schemaOf declares arguments, all required: "a" a string, "a:number" a number.
func schemaOf(names ...string) string {
	var properties, required []string
	for _, n := range names {
		name, kind, _ := strings.Cut(n, ":")
		if kind == "" {
			kind = "string"
		}
		properties = append(properties, `"`+name+`":{"type":"`+kind+`"}`)
		required = append(required, `"`+name+`"`)
	}
	return `"inputSchema":{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]}`
}
