package orchestrator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// TestAnAgentResponds: once its loop is over its planner is asked for a last answer, with what all calls of all rounds came
// to, by whoever owns the run then. That is the agent's output.
func TestAnAgentResponds(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"next_action":"execute","execution_commands":[{"purpose":"look","tool_name":"echo","tool_kwargs":{"n":1}},{"purpose":"look","tool_name":"fail","tool_kwargs":{}}]}`,
		`{"next_action":"execute","execution_commands":[{"tool_name":"length","tool_kwargs":{"text":"abc"}}]}`,
		`{"next_action":"response"}`,
		`"Three, and one that failed."`)
	x.before = func(round int) {
		if round == 3 {
			s.orchestrator()
			s.leave()
		}
	}
	s.agent("answers", "", `{"planner":{"tool":"planner","mode":"commands"},"tools":["echo","fail","length"],"respond":{"extra_instruction":"Be brief."}}`)
	o := s.run(`{"steps":[{"id":"a","tool":"answers"}]}`, "responds")
	require.JSONEq(t, `"Three, and one that failed."`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, []int{0, 1, 2, 3}, x.times())
	require.Equal(t, "false", string(x.asked[2]["final"]))
	last := x.asked[3]
	require.Equal(t, "true", string(last["final"]))
	require.JSONEq(t, `"Be brief."`, string(last["extra_instruction"]))
	require.Regexp(t, `^{"look":{"n":1},"look \(2\)":{"error":{.*"code":"tool_terminal".*}},"Use length":3}$`, string(last["action_results"]))
	require.Contains(t, string(last["rounds"]), `"purpose":"look"`, "what requests begin with stays as it was")
}

// TestLastAnswers that can't be used, those of loops that came to nothing, and those that nobody is asked for.
func TestLastAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	call := func(more string) string {
		return `{"steps":[{"id":"p","tool":"execute_tool_plan","arguments":{"steps":[{"id":"x","tool":"echo","arguments":{"n":1}}]}}]` + more + `}`
	}
	again := call("")
	steps := map[string]string{"kept": "9", "nothing": "9", "exhausted": "9", "silent": "9", "idle": "9", "fails": "9", "spent": "1"}
	for name, x := range map[string]struct {
		answers []string
		want    string // result
		code    fault.Code
	}{
		"kept":      {[]string{call(`,"output":"$ref:p"`), again}, `{"x":{"n":1}}`, ""},
		"nothing":   {[]string{again, `{"next_action":"response"}`, again}, "", fault.PlannerInvalid},
		"exhausted": {[]string{again, again, again, `"Not found."`}, `"Not found."`, ""},
		"silent":    {[]string{again, again, again, again}, "", fault.RoundsExhausted},
		"spent":     {[]string{call(`,"output":"$ref:p"`), `"Done."`}, `"Done."`, ""},
		"idle":      {[]string{`"Hello."`}, `"Hello."`, ""},
		"fails":     {[]string{again, `"Done."`}, "", fault.ToolTerminal},
	} {
		played := s.plays("planner-"+name, x.answers...)
		s.agent(name, "", `{"planner":{"tool":"planner-`+name+`","mode":"plan"},"tools":["echo","execute_tool_plan"],"respond":true,"max_rounds":3,"budget":{"steps":`+steps[name]+`}}`)
		o := s.run(`{"steps":[{"id":"a","tool":"`+name+`"}]}`, name)
		require.Len(t, played.times(), len(x.answers), name)
		if x.code != "" {
			require.Equal(t, outcome.Failed, o.Status, name)
			require.Equal(t, x.code, o.Errors[0].Code, "%s: %s", name, o.JSON())
			continue
		}
		require.JSONEq(t, x.want, result(t, o, "a"), name)
		if name != "idle" {
			require.Contains(t, string(played.asked[len(x.answers)-1]["action_results"]), `"Use execute_tool_plan":{"x":{"n":1}}`, name)
		}
	}
}
