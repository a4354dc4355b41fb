package agents_test

import (
	"encoding/json"
	"fmt"
	"runtime"
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

// TestAnAnswerIsReadOnceForItsRecordAndTheNextRequest: both come to the same whoever has read the answer; another answer of the same
// round is read anew, and once memory was collected nothing lies there any more.
func TestAnAnswerIsReadOnceForItsRecordAndTheNextRequest(t *testing.T) { //nolint:paralleltest // it counts allocations
	a := define(t, `"tools":["find","pay",{"tool":"late","needs":{"any":["find"]}}]`)
	answer := `{"steps":[{"id":"x","tool":"find","arguments":{"q":1}},{"id":"y","tool":"late","depends_on":["x"]},{"id":"z","tool":"pay","arguments":{"n":"$ref:x"}}]}`
	l := agents.Loop{Definition: a, Rounds: []*agents.Round{{Answer: []byte(answer)}}}
	with := func(shelf *agents.Shelf, answer string) *agents.Loop {
		return &agents.Loop{Definition: a, Rounds: []*agents.Round{{Answer: []byte(answer)}}, Shelf: shelf}
	}
	decided := func(shelf *agents.Shelf, answer string) *wire.Round {
		d, err := with(shelf, answer).Decide("a/=0")
		require.Nil(t, err)
		return d
	}
	shelf := &agents.Shelf{}
	for _, answer := range []string{answer, strings.Replace(answer, "pay", "find", 1), `{"steps":[{"id":"x","tool":"nobody"}]}`, answer} {
		require.Equal(t, decided(nil, answer), decided(shelf, answer))
		require.Equal(t, decided(nil, answer), decided(shelf, answer), "once more")
	}

	playRound(t, &l, 0)
	l.Rounds = append(l.Rounds, &agents.Round{})
	l.Part = func(round int) string { return fmt.Sprint("part-", round) }
	asked := func(shelf *agents.Shelf) *agents.Asked {
		next := l
		next.Shelf = shelf
		x, err := next.Ask(1)
		require.Nil(t, err)
		x.Past = nil // which is compared by what is asked of it
		return x
	}
	require.Equal(t, asked(nil), asked(shelf))
	cost := func(shelf *agents.Shelf, before func()) float64 {
		return testing.AllocsPerRun(5, func() {
			before()
			d := with(shelf, answer)
			_, _ = d.Decide("a/=0")
		})
	}
	anew := cost(nil, func() {})
	require.Less(t, cost(shelf, func() {}), anew*2/3)
	require.Greater(t, cost(shelf, runtime.GC), anew*9/10)
}

// TestLockedWithinStaysLocked: a call of a plan within a step that was locked when the answer came, or when people added it,
// and that nothing it waits for may open, is not made, though something else has opened it by the time that it is ready; in runs
// of before it is.
func TestLockedWithinStaysLocked(t *testing.T) {
	t.Parallel()
	for _, within := range []bool{true, false} {
		l := &agents.Loop{Within: within, Definition: define(t, `"tools":["find","pay",{"tool":"late","needs":{"any":["find"]}}]`), Rounds: []*agents.Round{{Answer: []byte(
			`{"steps":[{"id":"f","tool":"find"},{"id":"p","plan":{"steps":[{"id":"w","tool":"pay"},{"id":"x","tool":"late","depends_on":["w"]}]},"for_each":{"in":[1,2]}},
				{"id":"q","plan":{"steps":[{"id":"y","tool":"late"}]},"depends_on":["f"]}]}`)}}}
		d, err := l.Decide("a/=0")
		require.Nil(t, err)
		require.Empty(t, d.Problems)
		require.Empty(t, d.Settled)
		l.Rounds[0].Record = d
		added, as, problems, err := agents.Amend(l, 0, "a/=0", &wire.Change{Add: []json.RawMessage{[]byte(`{"id":"m","plan":{"steps":[{"id":"z","tool":"late"}]}}`)}})
		require.Nil(t, err)
		require.Empty(t, problems)
		l = &agents.Loop{Within: within, Definition: l.Definition, Rounds: []*agents.Round{{Answer: l.Rounds[0].Answer, Record: d, Amended: []agents.Amended{{Add: added, Round: as}}}}}
		l.Rounds[0].Calls = []agents.Call{{Path: "f", Single: true, Seq: 5, Status: "succeeded"}}
		for path, locked := range map[string]bool{"p/x": within, "m/z": within, "q/y": false} {
			_, _, no := l.Ready(0, path, 7, json.RawMessage(`{}`))
			require.Equal(t, locked, no != nil, "%s %t: %v", path, within, no)
			if locked {
				require.Equal(t, fault.Locked, no.Code)
			}
		}
	}
}
