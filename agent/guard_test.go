package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// TestGuardsRefuse what their conditions are not true of, what they can't decide, and what can't be looked at; the first
// that says no counts.
func TestGuardsRefuse(t *testing.T) {
	t.Parallel()
	d, report := agent.Parse([]byte(`{"name":"a","agent":{"planner":{"tool":"model"},"tools":["pay"],"guards":[
		{"on":"call","when":"$tool != 'pay' or $args.amount <= 100"},
		{"on":"call","when":"$round < 2","else":"fail"},
		{"on":"result","when":"$result.text not contains 'secret'"},
		{"on":"input","when":"$input.topic != 'the tides of the sea'"},
		{"on":"output","when":"$output.topic == $input.topic"}]}}`), nil)
	require.NotNil(t, d, "%v", report.Problems)
	seen := func(pairs ...string) map[string]json.RawMessage {
		all := map[string]json.RawMessage{}
		for i := 0; i < len(pairs); i += 2 {
			if all[pairs[i]] = json.RawMessage(pairs[i+1]); pairs[i+1] == "" {
				all[pairs[i]] = nil
			}
		}
		return all
	}
	for _, c := range []struct {
		on   string
		seen map[string]json.RawMessage
		no   string
		ends bool
	}{
		{plan.OnCall, seen("tool", `"pay"`, "args", `{"amount":100}`, "round", "0"), "", false},
		{plan.OnCall, seen("tool", `"pay"`, "args", `{"amount":100.5}`, "round", "5"), "a guard of the agent does not let this call of 'pay' pass, which asks for: $tool != 'pay' or $args.amount <= 100", false},
		{plan.OnCall, seen("tool", `"look"`, "args", `{}`, "round", "2"), "a guard of the agent does not let this call of 'look' pass, which asks for: $round < 2", true},
		{plan.OnCall, seen("tool", `"pay"`, "args", `{"amount":"much"}`, "round", "0"), "(", false},
		{plan.OnCall, seen("tool", `"pay"`, "args", "", "round", "0"), "($args is too large to be looked at)", false},
		{plan.OnResult, seen("tool", `"look"`, "result", `{"text":"a secret"}`), "this result of 'look'", false},
		{plan.OnResult, seen("tool", `"look"`, "result", `{"text":"known"}`), "", false},
		{plan.OnInput, seen("input", `{"topic":"the tides of the sea"}`), "does not let the input pass", false},
		{plan.OnOutput, seen("input", `{"topic":"x"}`, "output", `{"topic":"y"}`), "does not let the output pass", false},
		{plan.OnOutput, seen("input", `{"topic":"x"}`, "output", `{"topic":"x"}`), "", false},
	} {
		err, ends := d.Refuses(c.on, c.seen)
		if c.no == "" {
			require.Nil(t, err, "%s %s", c.on, c.seen)
			continue
		}
		require.Equal(t, fault.Rejected, err.Code)
		require.Contains(t, err.Message, c.no)
		require.NotEmpty(t, err.Hint)
		require.Equal(t, c.ends, ends, c.no)
		require.Equal(t, c.ends, d.Ends(err))
		require.Equal(t, c.on == plan.OnCall, d.NotMade(err), "only what was not called was not made")
	}
	require.False(t, d.Ends(fault.New(fault.Rejected, "by ann")))
	require.False(t, d.NotMade(fault.New(fault.Rejected, "by ann")))
	forged := fault.New(fault.Rejected, "x")
	forged.Details = json.RawMessage(`{"guard":99,"else":"reject"}`)
	require.False(t, d.NotMade(forged))
}
