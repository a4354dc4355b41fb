package worker

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func TestAToolIsHostedUnderItsDefinition(t *testing.T) {
	t.Parallel()
	list, err := tool.ParseDefinitions([]byte(`[{"name":"other"},
		{"name":"greet","title":"Greet","tenants":["acme"],"_meta":{"a":1},"x-orchestration":{"max_concurrency":3}}]`))
	require.NoError(t, err)
	w, err := New(&nats.Conn{}, Config{})
	require.NoError(t, err)
	greet := func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return in.Name, nil
	}
	Handle(w, "greet", greet, DefinedBy(list...), Description("Greets."))
	require.Empty(t, w.mistakes)
	def := w.tools["greet"].def
	require.Equal(t, "Greet", def.Title)
	require.Equal(t, "Greets.", def.Description, "later options change the definition")
	require.Equal(t, []string{"acme"}, def.Tenants)
	require.Equal(t, 3, def.Orchestration.MaxConcurrency)
	require.Contains(t, def.Extra, "_meta")
	require.Contains(t, string(def.InputSchema), `"name"`, "what it leaves out is inferred")
	require.Empty(t, list[1].Description, "the list stays as it was")

	Handle(w, "wave", greet, DefinedBy(list...))
	require.Len(t, w.mistakes, 1)
	require.Equal(t, fault.InvalidTool, fault.CodeOf(w.mistakes[0]))
}
