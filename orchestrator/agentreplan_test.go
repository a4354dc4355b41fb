package orchestrator_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// TestACallAsksForANewPlan: nothing of its round begins any more, what is out may end, and the planner is asked anew and
// told why, by whoever owns the run then.
func TestACallAsksForANewPlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	calls := make(chan string, 8)
	s.host("buy", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		calls <- string(args)
		if string(args) == `{"at":9}` {
			return worker.Output{}, worker.Replan("it costs 12 by now")
		}
		return worker.Output{Body: args}, nil
	})
	x := s.plays("planner",
		`{"steps":[{"id":"slow","tool":"gate"},{"id":"q","tool":"ask","arguments":{"question":"Which?"}},
			{"id":"shop","plan":{"steps":[{"id":"buy","tool":"buy","arguments":{"at":9}},{"id":"thank","tool":"echo","depends_on":["buy"],"arguments":{"n":1}}]}},
			{"id":"late","tool":"echo","depends_on":["slow"],"arguments":{"n":1}},{"id":"mend","value":"$error:shop.message"}],"output":"$ref:mend"}`,
		`{"steps":[{"id":"buy","tool":"buy","arguments":{"at":12}}],"output":"$ref:buy"}`)
	s.agent("shops", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo","ask","buy"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"shops"}]}`, "shop")
	<-s.tools.begun
	require.Equal(t, `{"at":9}`, <-calls)
	s.noQuestions() // once the failure was read, nobody is asked any more
	s.orchestrator()
	s.leave()
	x.mu.Lock()
	require.Len(t, x.asked, 1, "what is out is waited for")
	x.mu.Unlock()
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `{"at":12}`, result(t, o, "a"), "%s", o.JSON())
	codes := map[string]fault.Code{}
	for _, e := range o.Errors {
		if codes[e.Step] = e.Code; e.Code == fault.Cancelled {
			require.Equal(t, "Cancelled because 'a/=0/shop/buy' asks for a new plan: it costs 12 by now", e.Message)
		}
	}
	require.Equal(t, map[string]fault.Code{
		"a/=0/shop/buy": fault.Replan, "a/=0/shop/thank": fault.Cancelled, "a/=0/shop": fault.Cancelled, "a/=0/q": fault.Cancelled, "a/=0/late": fault.Cancelled, "a/=0/mend": fault.Cancelled,
	}, codes)
	rounds := string(x.asked[1]["rounds"])
	require.Contains(t, rounds, `"id":"slow","tool":"gate","arguments":{},"status":"succeeded"`)
	require.Contains(t, rounds, `{"code":"cancelled","message":"Cancelled because 'a/=0/shop/buy' asks for a new plan: it costs 12 by now"}`)
	require.JSONEq(t, `"$ref:mend"`, string(x.asked[1]["dropped_output"]))
	require.Equal(t, `{"at":12}`, <-calls)
	require.Empty(t, calls)
}

// TestAskingForANewPlanElsewhere is a failure as any other, and final: in a run with agents with its own code, in one without
// with that of the tool.
func TestAskingForANewPlanElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("buy", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{}, worker.Replan("it costs 12 by now")
	})
	s.plays("planner", `{"output":1}`)
	s.agent("quick", "", `{"planner":{"tool":"planner"}}`)
	o := s.run(`{"steps":[{"id":"b","tool":"buy"},{"id":"c","tool":"echo","arguments":{"why":"$error:b.tool_code"}}]}`, "bought")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"why":"replan"}`, result(t, o, "c"))
	require.Equal(t, fault.ToolFailed, o.Errors[0].Code)
	require.Equal(t, 1, o.Errors[0].Attempts)
	o = s.run(`{"steps":[{"id":"a","tool":"quick"},{"id":"b","tool":"buy"},{"id":"c","tool":"echo","arguments":{"why":"$error:b.code"}}]}`, "both")
	require.JSONEq(t, `{"why":"replan"}`, result(t, o, "c"), "%s", o.JSON())
	require.Equal(t, 1, o.Errors[0].Attempts)
}
