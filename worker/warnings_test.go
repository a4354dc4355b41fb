package worker

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// A tool whose output schema can't be used is hosted all the same, and the worker's log says what is wrong with it.
func TestABrokenOutputSchemaIsLoggedAtRegistration(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	def := &tool.Definition{Name: "odd", OutputSchema: json.RawMessage(`{"type":"any"}`)}
	w.worker(Config{Name: "one"}, func(x *Worker) {
		require.NoError(t, x.HandleRaw(def, func(context.Context, json.RawMessage) (Output, error) { return Output{Body: []byte("1")}, nil }))
	})
	require.Equal(t, 1, w.logs.count("a part of its definition is of no use"), "%s", w.logs)
	require.Contains(t, w.logs.String(), "place=/outputSchema/type")
	require.Contains(t, w.logs.String(), "is no type; the types are")
}
