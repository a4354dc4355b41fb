package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// reads is a catalog that reads agents of plans: what they are called with is one number.
type reads struct {
	catalog
	names []string
}

func (r *reads) InlineAgent(name, _ string, definition []byte) (plan.Tool, plan.Report) {
	r.names = append(r.names, name)
	var a struct{ Planner struct{ Tool string } }
	if json.Unmarshal(definition, &a) != nil || a.Planner.Tool == "" {
		return plan.Tool{}, plan.Report{Problems: []fault.Problem{{Code: fault.InvalidValue, Path: "/planner", Message: "as at /agent/tools/0 none", Hint: "not a/agent/b, but /agent/planner"}}, Warnings: []fault.Problem{{Code: fault.UnknownField, Path: "/x"}}}
	}
	in, _ := tool.CompileSchema([]byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`))
	return plan.Tool{Input: in, Agent: &plan.Agent{Planner: a.Planner.Tool, MaxRounds: 3}}, plan.Report{}
}

// An agent that a step defines is read by the catalog, under a name of its own; later by those that the run froze.
func TestInlineAgents(t *testing.T) {
	t.Parallel()
	const agent = `"agent":{"planner":{"tool":"echo"}},"arguments":{"n":1}`
	body := []byte(`{"steps":[{"id":"a",` + agent + `},{"id":"p","plan":{"steps":[{"id":"i",` + agent + `}]}},{"id":"l","repeat":{"max":2},` + agent + `},{"id":"e","for_each":{"in":[1]},` + agent + `}]}`)
	c := &reads{catalog: corpusTools(t)}
	p, r := plan.Parse(body, c)
	require.Empty(t, r.Problems)
	require.Equal(t, []string{"=a", "=l", "=e", "=p/i"}, c.names)
	require.Equal(t, []string{plan.AgentEnds, plan.AgentOrder, plan.Agents, plan.InlineAgents, plan.Language2, plan.LockedWithin, plan.Replan}, p.Needs())
	require.Equal(t, "=a", p.Steps[0].Tool)
	require.Equal(t, "echo", p.Steps[0].Plan.Steps[0].Tool)
	require.NotNil(t, p.Steps[2].Does().Agent())

	frozen := map[string]*plan.Template{}
	for _, name := range c.names {
		frozen[name] = &plan.Template{Name: name, Agent: &plan.Agent{Planner: "echo", MaxRounds: 3}}
	}
	again, r := plan.ParseLimited(body, nil, plan.Limits{Templates: frozen})
	require.Empty(t, r.Problems)
	require.Equal(t, p.Needs(), again.Needs())
	shown := plan.Accepted(body, nil)
	require.Nil(t, shown.Steps[0].Agent(), "who has no tools sees a call")
	require.Equal(t, 2, shown.Language)
	require.True(t, plan.IsInline(shown.Steps[0].Tool))

	_, r = plan.Parse([]byte(`{"steps":[{"id":"a","agent":{}},{"id":"b","tool":"nope"},{"id":"c","agent":{"planner":{"tool":"echo"}},"arguments":{"n":"x"}}]}`), c)
	require.Equal(t, []string{"invalid_value /steps/0/agent/planner", "unknown_tool /steps/1/tool", "invalid_arguments /steps/2/arguments/n"}, found(r.Problems))
	require.Equal(t, "/steps/0/agent/x", r.Warnings[0].Path)
	require.Equal(t, "as at /steps/0/agent/tools/0 none", r.Problems[0].Message, "a place in a text is one of the plan, too")
	require.Equal(t, "not a/agent/b, but /steps/0/agent/planner", r.Problems[0].Hint)
	require.Equal(t, "a", r.Problems[0].Step)
	for more, want := range map[string]string{
		`"tool":"echo",` + agent: "invalid_value /steps/0/agent", `"value":1,"agent":{}`: "invalid_value /steps/0/agent", `"plan":{"steps":[{"id":"i","tool":"echo"}]},"agent":{}`: "invalid_value /steps/0/agent",
		`"agent":"echo"`: "invalid_value /steps/0/agent", `"retry":{},` + agent: "invalid_value /steps/0/retry", `"partial":true,` + agent: "invalid_value /steps/0/partial",
	} {
		_, r = plan.Parse([]byte(`{"steps":[{"id":"a",`+more+`}]}`), c)
		require.Equal(t, []string{want}, found(r.Problems), more)
	}
	p, r = plan.Parse([]byte(`{"steps":[{"id":"a","name":"Ann",`+agent+`}]}`), c)
	require.NotNil(t, p, "beside an agent a name is a label: %v", r.Problems)
}
