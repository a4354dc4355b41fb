package machine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/internal/lab/unfold"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// gated is a tool that returns nothing before the plan is whole.
const gated = "gated"

// unfold takes the plan apart. It reports false for one that can't be.
func (w *nestWorld) unfold(t testing.TB) bool {
	tools := unfold.Tools{Echo: "echo", Broken: "broken", Gate: json.RawMessage(`{"id":"GATE","tool":"gated"}`)}
	u, ok := unfold.Plan(w.Rand, w.nested.Plan, w.plan, tools)
	if !ok {
		return false
	}
	if w.people != nil {
		w.people.submits(u)
	}
	for n, x := range u.Parts {
		w.queue = append(w.queue, &machine.Amendment{
			Scope: subjects.RootScope, Revision: n + 1, Add: x.Add, Discard: x.Discard, Output: x.Output, OutputSteps: x.OutputSteps,
			Close: x.Close, Contracts: w.start.Contracts,
		})
	}
	p, report := plan.Parse(u.Base, nil)
	require.NotNil(t, p, "%v\n%s", report.Problems, u.Base)
	w.plan = p
	w.start.Contracts[gated] = &tool.Contract{MaxAttempts: 1, Limit: 1, ErrorPropagation: tool.FailFast}
	return true
}

// amendNext records the next amendment.
func (w *nestWorld) amendNext() {
	a := w.queue[0]
	w.queue = w.queue[1:]
	w.create(fmt.Sprint("amend ", a.Scope, a.Revision), machine.Record{Amendment: a})
}

// TestRandomAmendmentsMatchTheTwin: a plan that comes in parts, some of them written again and others taken back, comes
// to what it comes to as a whole, whoever reads its records, in whichever order, and whoever dies.
func TestRandomAmendmentsMatchTheTwin(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	counted := map[string]int{}
	for seed := range int64(n) {
		w := newNestWorld(t, rand.New(rand.NewSource(1<<41+seed)), false)
		if !w.unfold(t) {
			continue
		}
		amendments := len(w.queue)
		m := w.run(t)
		what := fmt.Sprintf("seed %d: %s", seed, w.nested.Plan)
		require.Len(t, m.Amendments(), amendments, what)
		for _, a := range m.Amendments() {
			require.Nil(t, a.Stale(), "%s: %+v", what, a)
		}
		for c := range m.All() {
			require.True(t, m.Step(c, w.now).Status.Terminal(), "%s: %v", what, accountOf(m))
		}
		w.likeTheWhole(t, m, what, counted)
		counted["amendments"] += amendments
		w.again(t, m)
	}
	for _, what := range []string{"succeeded", "partial", "failed"} {
		require.NotZero(t, counted[what], "%v", counted)
	}
	require.Greater(t, counted["amendments"], n, "%v", counted)
}

// likeTheWhole compares what a run came to with what its plan comes to as a whole.
func (w *nestWorld) likeTheWhole(t testing.TB, m *machine.Run, what string, counted map[string]int) {
	all, err := w.nested.Run(nestContracts)
	require.NoError(t, err)
	want := all[""]
	var got struct {
		Status  string                     `json:"status"`
		Results map[string]json.RawMessage `json:"results"`
		Output  json.RawMessage            `json:"output"`
	}
	require.NoError(t, json.Unmarshal([]byte(w.outcome(m)), &got))
	require.Equal(t, want.Status, got.Status, what)
	require.Len(t, got.Results, len(want.Results), what)
	for _, r := range want.Results {
		same(t, r.JSON, got.Results[r.Step], "%s: result of %s", what, r.Step)
	}
	if want.Output != nil {
		same(t, want.Output, got.Output, "%s: output", what)
	}
	require.Empty(t, reference.Differ(accountOf(m), all), what)
	counted[want.Status]++
}

// TestAmendmentsThatComeToStandElsewhere: a record that is read late makes an amendment stale, by which a step was written
// again as something else. What either form of it has a place for is not taken for the other's.
func TestAmendmentsThatComeToStandElsewhere(t *testing.T) {
	t.Parallel()
	const list, composite = `{"id":"x","tool":"t","for_each":{"in":[1,2,3]},"depends_on":["g"]}`, `{"id":"x","depends_on":["g"],"plan":{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]}}`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, forms := range [][2]string{{list, composite}, {composite, list}} {
		p, report := plan.Parse([]byte(`{"open":true,"steps":[{"id":"g","tool":"t"},`+forms[0]+`]}`), nil)
		require.NotNil(t, p, "%v", report.Problems)
		amends := machine.Record{Seq: 10, Time: at, Amendment: &machine.Amendment{
			Scope: subjects.RootScope, Revision: 1, Discard: []string{"x"}, Add: []json.RawMessage{json.RawMessage(strings.Replace(forms[1], `,"depends_on":["g"]`, "", 1))},
		}}
		late := machine.Record{Seq: 5, Time: at, Result: &machine.Result{Attempt: 1, Body: []byte(`1`)}}
		seen := func(records ...machine.Record) string {
			m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})
			var out machine.Effects
			expand := func() {
				for len(out.Expand) > 0 {
					step := out.Expand[0]
					out.Expand = out.Expand[1:]
					m.Expand(step, 3, at, &out)
				}
			}
			m.Begin(&out)
			for _, rec := range records {
				m.Apply(rec, at, &out)
				expand()
			}
			var b strings.Builder
			for c := range m.All() {
				fmt.Fprintf(&b, "%s %s\n", m.Token(c), m.Step(c, at).Status)
			}
			fmt.Fprintln(&b, m.Amendments()[0].Stale())
			return b.String()
		}
		again, early, first := *amends.Amendment, *amends.Amendment, *amends.Amendment
		inOrder := seen(late, machine.Record{Seq: 10, Time: at, Amendment: &again})
		require.ElementsMatch(t, strings.Split(inOrder, "\n"), strings.Split(seen(amends, late), "\n"))
		require.Contains(t, inOrder, "duplicate_step")
		// The other way round: the step has begun as what it was, and then the amendment is read that comes before.
		inOrder = seen(machine.Record{Seq: 2, Time: at, Amendment: &first}, late)
		require.ElementsMatch(t, strings.Split(inOrder, "\n"), strings.Split(seen(late, machine.Record{Seq: 2, Time: at, Amendment: &early}), "\n"))
		require.Contains(t, inOrder, "<nil>")
	}
}

// TestAnAmendmentIsReadInTwoPlaces: one that waited for a person is read where its record stands, and again behind what was
// added elsewhere meanwhile, where its answer does. An owner that finds all of that in the ledger computes the state anew for
// each list that it comes to know, and then the lists that the amendment adds are those that it knows already.
func TestAnAmendmentIsReadInTwoPlaces(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"approval":true,"steps":[{"id":"g","tool":"t"},{"id":"p","plan":{"steps":[{"id":"a","tool":"t"}]}}]}`), nil)
	require.NotNil(t, p, "%v", report.Problems)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})
	var out machine.Effects
	seq := uint64(0)
	apply := func(rec machine.Record) {
		seq++
		rec.Seq, rec.Time = seq, at
		m.Apply(rec, at, &out)
	}
	approve := func() {
		q := m.Question(machine.Call{Step: machine.ThePlan})
		require.NotNil(t, q)
		apply(machine.Record{Answer: &machine.Answer{Call: q.Call, Number: q.Number, Digest: q.Digest, Decision: machine.Approve}})
	}
	amend := func(scope, add string, approved bool) {
		apply(machine.Record{Amendment: &machine.Amendment{Scope: scope, Revision: 1, Add: []json.RawMessage{json.RawMessage(add)}, Approved: approved}})
	}
	m.Begin(&out)
	approve()
	amend(subjects.RootScope, `{"id":"c","plan":{"steps":[{"id":"l","tool":"t","for_each":{"in":[1,2,3]}},{"id":"k","tool":"t","for_each":{"in":[1,2,3]}}]}}`, false)
	amend("p", `{"id":"b","tool":"t"}`, true)
	approve()
	apply(machine.Record{Result: &machine.Result{Call: machine.Call{Step: 0}, Attempt: 1, Body: []byte(`1`)}})

	told := 0
	for ; len(out.Expand) > 0 && told < 20; told++ {
		step := out.Expand[0]
		out.Expand = out.Expand[1:]
		m.Expand(step, 3, at, &out)
	}
	require.Empty(t, out.Expand, "after 20 lists it asks for more")
	require.Equal(t, 2, told, "each list is asked for once")
	items := 0
	for c := range m.All() {
		if c.Item > 0 {
			require.Equal(t, outcome.StepReady, m.Step(c, at).Status, m.Token(c))
			items++
		}
	}
	require.Equal(t, 6, items)
}
