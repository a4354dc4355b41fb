package plan_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// grown is a plan that came of amendments, and the steps that it should have.
type grown struct {
	plan  *plan.Plan
	steps []string
}

// is compares a plan with the one that has its steps from the beginning.
func (g *grown) is(t *testing.T) {
	t.Helper()
	whole := accepted(t, string(stepsOf(g.steps)))
	require.Len(t, g.plan.Steps, len(whole.Steps))
	require.Equal(t, whole.Outputs, g.plan.Outputs)
	require.Equal(t, whole.Depth, g.plan.Depth)
	for i := range whole.Steps {
		require.EqualExportedValues(t, whole.Steps[i], g.plan.Steps[i])
		require.Equal(t, append([]int{}, whole.Dependents(i)...), append([]int{}, g.plan.Dependents(i)...))
		require.Equal(t, whole.Regarded(i), g.plan.Regarded(i))
		require.Equal(t, filled(whole, i), filled(g.plan, i))
		at, known := g.plan.Index(whole.Steps[i].ID)
		require.True(t, known)
		require.Equal(t, i, at)
	}
	_, known := g.plan.Index(fmt.Sprint("s", len(g.steps)))
	require.False(t, known, "nothing of a plan that came of this one stands in it")
}

// add returns the plan with some more steps, of which one may be written again.
func (g *grown) add(t *testing.T, rnd *rand.Rand) grown {
	t.Helper()
	n := len(g.steps)
	a := plan.Amendment{Scope: subjects.RootScope}
	next := grown{steps: slices.Clone(g.steps)}
	for k := range 1 + rnd.IntN(3) {
		text := step(n+k, rnd)
		next.steps = append(next.steps, text)
		a.Add = append(a.Add, json.RawMessage(text))
	}
	if rnd.IntN(6) == 0 {
		i := rnd.IntN(n)
		next.steps[i] = step(i, rnd)
		a.Add = append(a.Add, json.RawMessage(next.steps[i]))
		a.Again = func(step int) bool { return step == i }
	}
	added, report := plan.Check(g.plan, &a, nil)
	require.Empty(t, report.Problems)
	require.Len(t, added.Steps, len(a.Add))
	require.Equal(t, len(next.steps)-n, added.More)
	x, report := g.plan.Amend(&a, nil)
	require.Empty(t, report.Problems)
	next.plan = x.Plan
	return next
}

// step writes one that may refer to those before it.
func step(n int, rnd *rand.Rand) string {
	forms := []string{`"tool":"x","arguments":{"n":"$ref:s%d.n"}`, `"tool":"x","depends_on":["s%d"]`, `"value":{"$calc":"$ref:s%d.n + 1"}`, `"tool":"x","if":"$status:s%d == 'failed'"`}
	if n == 0 {
		return `{"id":"s0","tool":"x"}`
	}
	return fmt.Sprintf(`{"id":"s%d",`+forms[rnd.IntN(len(forms))]+`}`, n, rnd.IntN(n))
}

// Plans that come of one another share what they have in common, and none of them changes by what comes of it: whichever
// is amended, how often, in what order, and while others are read.
func TestPlansThatComeOfOneAnother(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		first := []string{step(0, rnd)}
		for i := range rnd.IntN(70) {
			first = append(first, step(i+1, rnd))
		}
		all := []grown{{accepted(t, string(stepsOf(first))), first}}
		for range 60 {
			from := len(all) - 1 // the newest, mostly
			if rnd.IntN(3) == 0 {
				from = rnd.IntN(len(all))
			}
			all = append(all, all[from].add(t, rnd))
			old := &all[rnd.IntN(len(all))]
			_, report := old.plan.Amend(&plan.Amendment{Scope: subjects.RootScope, Add: rawSteps(t, fmt.Sprintf(`{"id":"s%d","tool":"x","arguments":{"x":"$ref:nobody"}}`, len(old.steps)))}, nil)
			require.Len(t, report.Problems, 1)
			require.Equal(t, fmt.Sprint("s", len(old.steps)), report.Problems[0].Step)
		}
		for i := range all {
			all[i].is(t)
		}
	}
}

// A plan is read by many, whoever amends it.
func TestPlansAreAmendedByMany(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	g := grown{accepted(t, `{"open":true,"steps":[{"id":"s0","tool":"x"}]}`), []string{`{"id":"s0","tool":"x"}`}}
	for range 40 {
		g = g.add(t, rnd)
	}
	var all sync.WaitGroup
	results := make([]grown, 8)
	for k := range results {
		all.Go(func() {
			rnd, mine := rand.New(rand.NewPCG(uint64(k), 3)), g
			for range 10 {
				mine = mine.add(t, rnd)
				g.is(t)
			}
			results[k] = mine
		})
	}
	all.Wait()
	for k := range results {
		results[k].is(t)
	}
}

// What an amendment costs follows from what it adds: a plan of thousands of steps is neither gone through nor copied.
func TestAmendmentsCostWhatTheyAdd(t *testing.T) {
	many := make([]string, 9000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"s%d","tool":"x"}`, i)
	}
	p := accepted(t, string(stepsOf(many)))
	amend := func(n int) plan.Amendment {
		return plan.Amendment{Scope: subjects.RootScope, Add: rawSteps(t, fmt.Sprintf(`{"id":"a%d","tool":"x","arguments":{"n":"$ref:s%d.n"},"if":"$status:s7 == 'failed'"}`, n, n))}
	}
	first := amend(0)
	x, report := p.Amend(&first, nil) // has room from here on
	require.Empty(t, report.Problems)
	p = x.Plan
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := 1; n <= 500; n++ {
		a := amend(n)
		added, _ := plan.Check(p, &a, nil)
		require.NotNil(t, added)
		x, _ := p.Amend(&a, nil)
		p = x.Plan
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / 500
	require.Less(t, each, uint64(40_000), "bytes for one amendment; the steps of the plan are %d", 9000*400)
	require.Len(t, p.Dependents(7), 501)
	require.True(t, p.Regarded(7))
}
