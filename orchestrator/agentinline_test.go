package orchestrator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// TestAnAgentOfAPlan is one that a step defines itself: it runs as one of the registry does, other owners go on with it,
// approvals, budgets, agents below, lists and plans within are its as well, and nothing of it is registered.
func TestAnAgentOfAPlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner",
		`{"steps":[{"id":"x","tool":"look","arguments":{"n":1}},{"id":"c","tool":"clerk"}]}`, `{"steps":[{"id":"g","tool":"gate"}]}`, `{"output":{"n":"$ref:r0.x.n"}}`)
	s.plays("below", `{"output":"done"}`)
	s.agent("clerk", "", `{"planner":{"tool":"below"},"tools":["echo"]}`)
	r := s.submit(`{"steps":[
		{"id":"t","tool":"echo","arguments":{"topic":"tides"}},
		{"id":"a","agent":{"description":"Finds.","inputSchema":{"type":"object","required":["topic"]},"outputSchema":{"type":"object","required":["n"]},
			"planner":{"tool":"planner","mode":"plan"},"instructions":"Find ${input.topic}.","tools":[{"tool":"echo","as":"look"},"clerk","gate"],"budget":{"steps":5}},
		 "arguments":{"topic":"$ref:t.topic"}},
		{"id":"b","tool":"echo","arguments":{"x":"$ref:a.n"}}],"output_steps":["b"]}`, "inline")
	<-s.tools.begun
	next := s.orchestrator()
	s.leave()
	s.leave = next
	s.tools.gate <- struct{}{}
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"x":1}`, result(t, o, "b"))
	require.Equal(t, `"Find tides."`, string(x.asked[0]["instructions"]))
	require.Contains(t, string(x.asked[1]["budget"]), `"steps":3`)
	require.Equal(t, []int{0, 1, 2}, x.times(), "nobody was asked twice, though another owner took the run over")
	doc := s.history("default", "inline")
	require.Equal(t, "=a", doc.Steps[1].Tool)
	require.Equal(t, "a/=0/c", doc.Steps[1].Steps[2].ID)
	require.Equal(t, "a/=0/c/=0/=plan", doc.Steps[1].Steps[2].Steps[0].ID)
	_, err := s.store.Registry.Tool(ctx(t), "=a")
	require.Error(t, err)
}

// TestAgentsOfPlansInEveryPlace: within a plan, in a list and a loop, in a template that is called twice.
func TestAgentsOfPlansInEveryPlace(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner", `{"steps":[{"id":"x","tool":"echo","arguments":{"n":1}}]}`, `{"output":{"n":"$ref:r0.x.n"}}`)
	const agent = `"agent":{"planner":{"tool":"planner","mode":"plan"},"instructions":"${input.of}","tools":["echo"]}`
	put, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"desk","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"a",`+agent+`,"arguments":{"of":"$input.of"}}],"output":"$ref:a.n"}}`))
	require.NoError(t, err)
	require.Equal(t, []string{wire.LanguageTwo, wire.InlineAgents}, put.Needs)
	o := s.run(`{"steps":[
		{"id":"within","plan":{"steps":[{"id":"a",`+agent+`,"arguments":{"of":"plan"}}],"output":"$ref:a.n"}},
		{"id":"list",`+agent+`,"for_each":{"in":["p","q"]},"arguments":{"of":"$ref:item"}},
		{"id":"loop",`+agent+`,"repeat":{"max":2,"collect":true},"arguments":{"of":"loop"}},
		{"id":"one","tool":"desk","arguments":{"of":"one"}},{"id":"two","tool":"desk","arguments":{"of":"two"}}]}`, "places")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `1`, result(t, o, "within"))
	require.Contains(t, result(t, o, "list"), `{"n":1}`)
	require.JSONEq(t, `[{"n":1},{"n":1}]`, result(t, o, "loop"))
	require.JSONEq(t, `1`, result(t, o, "two"))
	told := map[string]int{}
	for _, asked := range x.asked {
		told[string(asked["instructions"])]++
	}
	require.Equal(t, map[string]int{`"plan"`: 2, `"p"`: 2, `"q"`: 2, `"loop"`: 4, `"one"`: 2, `"two"`: 2}, told)
	require.Equal(t, "=desk:a", s.history("default", "places").Steps[3].Steps[0].Tool)
}

// TestWhatIsWrongWithAnAgentOfAPlan is told at once, where it stands in the plan, with all else that is wrong.
func TestWhatIsWrongWithAnAgentOfAPlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"output":1}`)
	places := func(plan string) (all []string) {
		o := s.run(plan, "")
		require.Equal(t, outcome.Rejected, o.Status, "%s", o.JSON())
		for _, p := range o.Problems {
			require.NotEmpty(t, p.Message)
			all = append(all, string(p.Code)+" "+p.Path)
		}
		return all
	}
	require.ElementsMatch(t, []string{
		"invalid_tool /steps/0/agent/inputSchema/type", "unknown_tool /steps/0/agent/tools/1", "invalid_value /steps/0/agent/max_rounds", "unknown_tool /steps/0/agent/planner/tool",
		"invalid_ref /steps/0/agent/instructions", "unknown_ref /steps/0/arguments/x", "unknown_tool /steps/1/tool",
	}, places(`{"steps":[{"id":"a","agent":{"planner":{"tool":"gone"},"instructions":"${topic}","tools":["echo","ecco"],"max_rounds":0,"inputSchema":{"type":7}},"arguments":{"x":"$ref:none"}},{"id":"b","tool":"nope"}]}`))
	const sound = `"agent":{"planner":{"tool":"planner"},"tools":["echo"],"inputSchema":{"type":"object","required":["x"],"properties":{"x":{"type":"integer"}},"additionalProperties":false}}`
	require.ElementsMatch(t, []string{"invalid_value /steps/0/agent", "invalid_value /steps/0/retry"}, places(`{"steps":[{"id":"a","tool":"echo",`+sound+`,"retry":{"max_attempts":2},"arguments":{"x":1}}]}`))
	require.Equal(t, []string{"invalid_value /steps/0/agent"}, places(`{"steps":[{"id":"a","value":1,`+sound+`}]}`))
	require.Equal(t, []string{"invalid_value /steps/0/agent"}, places(`{"steps":[{"id":"a","plan":{"steps":[{"id":"i","tool":"echo"}]},`+sound+`}]}`))
	require.Equal(t, []string{"invalid_value /steps/0/agent"}, places(`{"steps":[{"id":"a","agent":"planner"}]}`))
	require.Equal(t, []string{"unknown_field /steps/0/agent/agent"}, places(`{"steps":[{"id":"a","agent":{"description":"A.","agent":{"planner":{"tool":"planner"}}}}]}`))
	require.Equal(t, []string{"invalid_arguments /steps/0/arguments"}, places(`{"steps":[{"id":"a",`+sound+`}]}`))
	require.Equal(t, []string{"invalid_arguments /steps/0/arguments/x"}, places(`{"steps":[{"id":"a",`+sound+`,"arguments":{"x":"one"}}]}`))
	require.Equal(t, []string{"unknown_tool /steps/0/agent/guards/0/tool"},
		places(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"tools":["echo"],"guards":[{"on":"input","tool":"gone","else":"ask"}]}}]}`))
	nested := `{"id":"a",` + sound + `,"arguments":{"x":1}}`
	for range 8 {
		nested = `{"id":"a","plan":{"steps":[` + nested + `]}}`
	}
	require.Equal(t, []string{"limit_exceeded /steps/0" + strings.Repeat("/plan/steps/0", 8) + "/agent"}, places(`{"steps":[`+nested+`]}`))
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"round","plan":{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"tools":["round"]}}]}}`))
	require.ErrorContains(t, err, "reaches itself", "a template whose agent may call it")
}

// TestAgentsOfPlansMayCallWhatTheirRunMay, and no more: what they can reach takes the permissions of it.
func TestAgentsOfPlansMayCallWhatTheirRunMay(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"x","tool":"echo","arguments":{"n":1}}],"output":"$ref:x"}`)
	s.group(`{"role":"web","tools":["echo"],"permissions":["internet"]}`)
	const plan = `{"steps":[{"id":"a","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"]}}]}`
	o := s.permit(plan, "refused", "host")
	require.Equal(t, []fault.Code{fault.NotPermitted}, codes(o.Problems), "%s", o.JSON())
	require.Equal(t, "/steps/0/agent", o.Problems[0].Path)
	o = s.permit(plan, "permitted", "internet")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
}

// TestAnAnswerDefinesNoAgent, not in a plan within a call either: that is a problem with its place.
func TestAnAnswerDefinesNoAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	const agent = `{"id":"i","agent":{"planner":{"tool":"planner"},"tools":["echo"]}}`
	x := s.plays("planner", `{"steps":[`+agent+`]}`, `{"steps":[{"id":"p","tool":"execute_tool_plan","arguments":{"steps":[`+agent+`]}}]}`, `{"output":1}`)
	o := s.run(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","execute_tool_plan"]}}]}`, "none")
	require.JSONEq(t, `1`, result(t, o, "a"))
	var rounds []struct {
		Problems []struct{ Code, At, Message string }
	}
	require.NoError(t, json.Unmarshal(x.asked[2]["rounds"], &rounds))
	for n, at := range []string{"/steps/0/agent", "/steps/0/arguments/steps/0/agent"} {
		require.Len(t, rounds[n].Problems, 1)
		require.Equal(t, at, rounds[n].Problems[0].At)
		require.Equal(t, string(fault.InvalidValue), rounds[n].Problems[0].Code)
		require.Contains(t, rounds[n].Problems[0].Message, "an answer defines no agents")
	}
}

// TestARunWithAnAgentOfAPlanSaysWhatItNeeds, so that who does not know of such leaves it alone.
func TestARunWithAnAgentOfAPlanSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"output":1}`)
	s.run(`{"steps":[{"id":"a","agent":{"planner":{"tool":"planner"},"approval":"plan","state":{"initial":{}},"tools":["echo"]}}]}`, "needs")
	st := s.frozen("needs")
	require.Equal(t, []string{wire.AgentEnds, wire.AgentOrder, wire.AgentState, wire.Agents, wire.ApprovedRounds, wire.InlineAgents, wire.LanguageTwo, wire.LockedWithin, wire.Replan}, st.Needs)
	require.JSONEq(t, `{"name":"a","agent":{"planner":{"tool":"planner"},"approval":"plan","state":{"initial":{}},"tools":["echo"]}}`, string(st.Tools["=a"].Definition))
}
