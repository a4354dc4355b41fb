package agents_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
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

// TestALongAnswerIsReadOnce: gates say the same of its calls whoever has read it, and who finds it read does little; an
// amendment has it read anew.
func TestALongAnswerIsReadOnce(t *testing.T) { //nolint:paralleltest // it counts allocations
	const calls = 60
	var steps []string
	for i := range calls {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"arguments":{"n":%d}}`, i, []string{"find", "pay", "late"}[i%3], i))
	}
	a := define(t, `"tools":["find","pay",{"tool":"late","needs":{"any":["find"]}}]`)
	l := agents.Loop{Definition: a, Rounds: []*agents.Round{{Answer: []byte(`{"steps":[` + strings.Join(steps, ",") + `]}`)}}}
	playRound(t, &l, 0)
	shelf := &agents.Shelf{}
	with := func(shelf *agents.Shelf) *agents.Loop {
		return &agents.Loop{Definition: a, Rounds: l.Rounds, Shelf: shelf}
	}
	for i := range calls {
		path, args := fmt.Sprint("s", i), json.RawMessage(`{"n":7}`)
		want, result, refused := with(nil).Ready(0, path, uint64(i), args)
		got, again, no := with(shelf).Ready(0, path, uint64(i), args)
		require.Equal(t, string(want), string(got), path)
		require.Equal(t, string(result), string(again), path)
		require.Equal(t, refused, no, path)
	}
	cost := func(l func() *agents.Loop) float64 {
		return testing.AllocsPerRun(5, func() { _, _, _ = l().Ready(0, "s1", 0, json.RawMessage(`{}`)) })
	}
	anew := cost(func() *agents.Loop { return with(nil) })
	require.Less(t, 20*cost(func() *agents.Loop { return with(shelf) }), anew)

	l.Rounds[0].Amended = []agents.Amended{{Add: []json.RawMessage{[]byte(`{"id":"new","tool":"late"}`)}, Round: &wire.AmendedRound{}}}
	for _, shelf := range []*agents.Shelf{nil, shelf} {
		_, _, refused := with(shelf).Ready(0, "new", 0, json.RawMessage(`{}`))
		require.Equal(t, fault.Locked, fault.CodeOf(refused), "an amendment has it read anew")
	}
}
