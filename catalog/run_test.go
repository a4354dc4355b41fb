package catalog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/catalog"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/builtin"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/worker"
)

// Every example of the guide runs as it stands there, and comes to what one would expect.
func TestTheExamplesOfTheGuideRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stack, err := dev.Start(ctx, dev.Options{})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	results := map[string]string{
		"list_orders": `{"total": 2, "items": [{"customer_id": "c1"}, {"customer_id": "c2"}]}`, "get_customer": `{"name": "Ann"}`, "search": `{"hits": []}`,
	}
	nc, err := stack.Connect(ctx, "worker")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	w, err := worker.New(nc, worker.Config{Name: "examples"})
	require.NoError(t, err)
	for _, d := range definitions(t, "testdata/example.json") {
		require.NoError(t, w.HandleRaw(d, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
			if body, known := results[d.Name]; known {
				return worker.Output{Body: []byte(body)}, nil
			}
			return worker.Output{Body: args}, nil
		}))
	}
	go func() { _ = w.Run(ctx) }() // it ends with the context
	select {
	case <-w.Ready():
	case <-ctx.Done():
		t.Fatal("the worker is not ready")
	}
	c, err := client.New(ctx, nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for body, want := range map[string]string{
		catalog.Example:        `{"report":{"title":"2 late orders","customers":["Ann","Ann"],"policy":"none found"}}`,
		catalog.NumbersExample: `{"rest":75.605}`,
	} {
		out, err := c.Run(ctx, []byte(body), client.SubmitOptions{})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
		got, err := out.Results.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

// A whole result in a number's place is answered with the part that is meant, and so is the form in which the answer
// shows a for_each.
func TestTheGuidesMistakesAreAnswered(t *testing.T) {
	t.Parallel()
	tools := tools{}
	for _, b := range builtin.All() {
		in, err := b.Definition.Input()
		require.NoError(t, err)
		out, err := b.Definition.Output()
		require.NoError(t, err)
		tools[b.Definition.Name] = plan.Tool{Input: in, Output: out}
	}
	for ref, says := range map[string]string{
		"$ref:boys": `write "$ref:boys.result"`, "$ref:many.results[0].data.result": "$ref:many[0].data.result", "$ref:many[0].result": "$ref:many[0].data.result",
	} {
		_, r := plan.Parse(fmt.Appendf(nil, `{"steps":[{"id":"boys","tool":"add","arguments":{"a":1,"b":2}},{"id":"many","tool":"add","for_each":{"in":[1,2]},"arguments":{"a":"$ref:item","b":1}},
			{"id":"x","tool":"add","arguments":{"a":%q,"b":1}}]}`, ref), tools)
		require.Len(t, r.Problems, 1, ref)
		require.Contains(t, r.Problems[0].Hint, says, r.Problems[0].Message)
	}
}
