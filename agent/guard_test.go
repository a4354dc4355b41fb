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
		no := d.Refuses(c.on, 0, c.seen)
		if c.no == "" {
			require.Nil(t, no, "%s %s", c.on, c.seen)
			continue
		}
		err, ends := no.Err, no.Ends
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

// TestGuardsThatAreTools let pass where they say true, alone or as "pass", and nothing else; conditions come first.
func TestGuardsThatAreTools(t *testing.T) {
	t.Parallel()
	d, report := agent.Parse([]byte(`{"name":"a","agent":{"planner":{"tool":"model"},"tools":["pay"],"guards":[
		{"on":"call","tool":"audit","else":"ask"},{"on":"input","tool":"filter"},{"on":"call","when":"$args.amount <= 100","else":"ask"},
		{"on":"call","tool":"filter","else":"fail"},{"on":"output","when":"$output != null"}]}}`), nil)
	require.NotNil(t, d, "%v", report.Problems)
	require.Equal(t, []string{"audit", "filter", "filter"}, d.GuardTools())
	require.True(t, d.Asks(plan.OnCall))
	require.False(t, d.Asks(plan.OnInput), "of a tool nobody knows before it is asked")
	for _, c := range []struct {
		on          string
		from        int
		guard, tool int
		ok          bool
	}{
		{plan.OnCall, 0, 0, 0, true}, {plan.OnCall, 1, 3, 2, true}, {plan.OnCall, 4, 0, 0, false}, {plan.OnInput, 0, 1, 1, true}, {plan.OnInput, 2, 0, 0, false}, {plan.OnOutput, 0, 0, 0, false},
	} {
		guard, tool, ok := d.Tool(c.on, c.from)
		require.Equal(t, []any{c.guard, c.tool, c.ok}, []any{guard, tool, ok}, "%+v", c)
	}
	for said, why := range map[string]string{
		`true`: "", `{"pass":true}`: "", `{"pass":true,"reason":"fine"}`: "",
		`false`: "of the agent does not let this call of 'pay' pass", `{"pass":false,"reason":"too much"}`: "pass: too much", `{"pass":false}`: "pass",
		`{"passed":true}`: "neither true or false", `"true"`: "neither true or false", `1`: "neither true or false", `null`: "neither true or false", `[true]`: "neither true or false", ``: "too large",
	} {
		value := []byte(said)
		if said == "" {
			value = nil
		}
		no := d.Said(3, "pay", value, nil)
		if why == "" {
			require.Nil(t, no, said)
			continue
		}
		require.NotNil(t, no, said)
		require.Contains(t, no.Err.Message, why)
		require.Equal(t, fault.Rejected, no.Err.Code)
		require.True(t, no.Ends && !no.Asks && d.Ends(no.Err) && d.NotMade(no.Err))
	}
	no := d.Said(0, "pay", nil, fault.New(fault.ToolFailed, "it broke"))
	require.Contains(t, no.Err.Message, "the guard 'audit' of the agent does not let this call of 'pay' pass: it failed: it broke")
	require.True(t, no.Asks && !no.Ends)
	rejected := d.Rejected(0, fault.New(fault.Rejected, "by ann"))
	require.True(t, d.NotMade(rejected) && !d.Ends(rejected))
	no = d.Refuses(plan.OnCall, 0, map[string]json.RawMessage{"args": json.RawMessage(`{"amount":101}`), "tool": json.RawMessage(`"pay"`)})
	require.True(t, no.Asks && no.Guard == 2)
	require.Nil(t, d.Refuses(plan.OnCall, 3, map[string]json.RawMessage{"args": json.RawMessage(`{"amount":101}`)}))
}
