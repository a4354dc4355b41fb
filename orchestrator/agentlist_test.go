package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/worker"
)

// TestAListOfAgentsEndsWithTheFirstThatFails: who reads what became of the others is told what can be done about it: no plan stands
// beside an agent that could be partial.
func TestAListOfAgentsEndsWithTheFirstThatFails(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("planner", patient, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		var r struct{ Input struct{ N int } }
		if err := json.Unmarshal(sent, &r); err != nil {
			return worker.Output{}, err
		}
		if r.Input.N == 0 {
			return worker.Output{}, worker.Terminal(errors.New("no idea"))
		}
		<-ctx.Done() // it is given up
		return worker.Output{}, context.Cause(ctx)
	})
	s.agent("child", "", `{"planner":{"tool":"planner"},"tools":["echo"]}`)
	o := s.run(`{"steps":[{"id":"c","tool":"child","for_each":{"in":[1,0,2],"as":"n"},"arguments":{"n":"$ref:n"}}]}`, "list")
	var hints []string
	for _, e := range o.Errors {
		if e.Code == fault.Cancelled && e.Step != "c" {
			hints = append(hints, e.Message+" "+e.Hint)
		}
	}
	require.NotEmpty(t, hints, "%s", o.JSON())
	for _, h := range hints {
		require.Contains(t, h, "the first agent of a list that fails lets no other go on")
		require.NotContains(t, h, "partial")
	}
}
