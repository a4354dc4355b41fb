package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
)

// TestWhichCallsAreFree: of the calls of a round, at any depth, those whose gates can have nothing to say are free, and no
// others. With guards none is.
func TestWhichCallsAreFree(t *testing.T) {
	t.Parallel()
	const entries = `"tools":["find","pay","execute_tool_plan","progress",{"tool":"find","as":"once","once":"It is there."},{"tool":"find","as":"later","needs":{"called":true,"any":["late"]}},
		{"tool":"find","as":"bound","bind":{"n":1}},{"tool":"find","as":"named"},"late"]`
	const answer = `{"steps":[{"id":"find","tool":"find"},{"id":"pay","tool":"pay"},{"id":"late","tool":"late"},{"id":"once","tool":"once"},{"id":"later","tool":"later","depends_on":["late"]},
		{"id":"bound","tool":"bound"},{"id":"value","value":1},{"id":"says","tool":"progress","arguments":{"message":"m"}},
		{"id":"plan","plan":{"steps":[{"id":"in","tool":"named"},{"id":"paid","tool":"pay"}]}},{"id":"each","tool":"named","for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"}}]}`
	free := func(members string) (all []string) {
		a := define(t, members)
		l := agents.Loop{Definition: a, Rounds: []*agents.Round{{Answer: []byte(answer)}}}
		d, err := l.Decide("a/=0")
		require.Nil(t, err)
		require.Empty(t, d.Problems)
		require.Empty(t, d.Settled)
		of := func(a *agent.Definition) (all []string) {
			var look func(p *plan.Plan)
			look = func(p *plan.Plan) {
				for _, s := range p.Steps {
					if s.Free {
						all = append(all, s.ID)
					}
					if s.Plan != nil {
						look(s.Plan)
					}
				}
			}
			look(agents.Decided(d, "a/=0", a, &plan.Agent{}, nil, nil, false).Plan)
			return all
		}
		require.Empty(t, of(nil), "of an agent that is not known here")
		return of(a)
	}
	require.Equal(t, []string{"find", "late", "in", "each"}, free(entries))
	require.Empty(t, free(entries+`,"guards":[{"on":"call","when":"$tool != 'pay'"}]`))
}
