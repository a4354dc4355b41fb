package machine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

func never(machine.Call, machine.Call) bool { return false }

func unlisted(int) {}

// apart returns the value of a result that the machine does not hold: it lies in a blob, or was let go of.
func (w *nestWorld) apart(m *machine.Run, res *machine.Result) []byte {
	if res.Handle != nil {
		return w.blobs[res.Handle.Name]
	}
	if res.Derived {
		return w.derived(m, res)
	}
	return w.recorded(m, res)
}

// derived derives again what a value or a composite came to.
func (w *nestWorld) derived(m *machine.Run, res *machine.Result) (value []byte) {
	s, first := m.PlanStep(res.Call.Step), 0
	var all [][]byte
	for _, numbers := range m.Inside(res.Call) {
		first = numbers.First()
		if s.Repeat != nil {
			all = append(all, w.value(m, first))
		}
	}
	switch {
	case s.Value:
		r, _, of, result := w.resolver(m, res.Call.Step)
		effort := plan.FullEffort
		value, _ = r.Derive(of.Step(res.Call.Step), res.Size, &effort, result)
	case s.Repeat != nil && s.Repeat.Collect:
		value = slices.Concat([]byte("["), bytes.Join(all, []byte(",")), []byte("]"))
	case s.Repeat != nil:
		value = all[len(all)-1]
	default:
		r, _, _, result := w.resolver(m, first)
		value, _ = r.Output(m.Lenient(res.Call), result)
	}
	return value
}

// recorded reads the value of a result out of the ledger.
func (w *nestWorld) recorded(m *machine.Run, res *machine.Result) []byte {
	token := m.Token(res.Call)
	for _, rec := range w.ledger {
		if x := rec.Result; x != nil && *x.Token == token && x.Attempt == res.Attempt {
			value, _ := plan.Output(x.Body, x.Text)
			return value
		}
	}
	return nil
}

// letGo lets a machine let go of what nobody refers to any more, and gives back what it needs for its state to be computed
// anew, as an owner would.
func (w *nestWorld) letGo(m *machine.Run, e *machine.Effects) {
	if w.Intn(2) == 0 {
		machine.LetGo(m, 0, never, unlisted)
	}
	if !machine.Recalls(m) {
		return
	}
	w.recalls++
	e.Reset()
	for _, res := range machine.MissingOf(m, nil) {
		machine.GiveBack(m, res, w.recorded(m, res))
	}
	machine.Recall(m, w.now, e)
}

// TestLetGoOfNothingThatCounts runs random plans with plans within them, in machines that let go of all that they may and
// in machines that let go of nothing: both come to the same by the same records.
func TestLetGoOfNothingThatCounts(t *testing.T) {
	t.Parallel()
	n := *worlds / 4
	if testing.Short() {
		n = 200
	}
	gone, recalls := int64(0), 0
	for seed := range int64(n) {
		w := newNestWorld(t, rand.New(rand.NewSource(5<<40+seed)), seed%2 == 0)
		w.hasty = seed%3 == 0
		m := w.run(t)
		gone, recalls = gone+machine.Away(m), recalls+w.recalls
		kept := machine.New(w.plan, w.start)
		var e machine.Effects
		kept.Begin(&e)
		for _, rec := range w.ledger {
			for w.tellAll(kept, &e) {
			}
			kept.Apply(w.read(rec), w.now, &e)
		}
		for w.tellAll(kept, &e) {
		}
		require.True(t, kept.Finished(), "seed %d", seed)
		require.Equal(t, accountOf(kept), accountOf(m), "seed %d", seed)
		require.Equal(t, w.outcome(kept), w.outcome(m), "seed %d", seed)
		for c := range kept.All() {
			same, there := m.Find(kept.Token(c))
			require.True(t, there)
			a, b := kept.Result(c), m.Result(same)
			require.Equal(t, a == nil, b == nil)
			if b != nil && b.Away {
				require.Equal(t, string(a.Value), string(w.apart(m, b)), "seed %d: %s", seed, w.nested.Plan)
			} else if b != nil {
				require.Equal(t, string(a.Value), string(b.Value))
			}
		}
	}
	require.NotZero(t, gone)
	require.NotZero(t, recalls)
}

// fed is a machine whose calls return what they are to.
type fed struct {
	m   *machine.Run
	seq uint64
	e   machine.Effects
}

// feed runs a plan whose calls all return something of some bytes, and lets go of what it may each time.
func feed(t testing.TB, body string, size int, letGo bool, each func(*fed)) *fed {
	p := parsed(t, body)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	x := &fed{m: machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})}
	x.m.Begin(&x.e)
	for out := append([]machine.Dispatch{}, x.e.Dispatch...); len(out) > 0; {
		d := out[0]
		out = out[1:]
		x.e.Reset()
		x.seq++
		x.m.Apply(machine.Record{Seq: x.seq, Time: at, Result: &machine.Result{Call: d.Call, Attempt: 1, Body: filled(size)}}, at, &x.e)
		if letGo {
			machine.LetGo(x.m, 1<<20, never, unlisted)
		}
		out = append(out, x.e.Dispatch...)
		each(x)
	}
	require.True(t, x.m.Finished())
	return x
}

// filled returns an object of some bytes.
func filled(n int) []byte {
	return append(append([]byte(`{"n":1,"text":"`), bytes.Repeat([]byte("x"), n-len(`{"n":1,"text":""}`))...), `"}`...)
}

// inMemory returns how many bytes lie in memory.
func inMemory() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// heldShapes are plans that return much more than anybody refers to.
func heldShapes() map[string]string {
	var scopes []string
	for i := range 1000 {
		after := ""
		if i > 0 {
			after = fmt.Sprintf(`"depends_on":["s%d"],`, i-1)
		}
		scopes = append(scopes, fmt.Sprintf(`{"id":"s%d",%s"plan":{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"n":"$ref:a.n"}},{"id":"c","tool":"t","arguments":{"n":"$ref:b.n"}}],"output":"$ref:c.n"}}`, i, after))
	}
	return map[string]string{
		"loop":          `{"steps":[{"id":"l","tool":"t","arguments":{"n":"$last.n"},"repeat":{"max":9990}}],"output_steps":["l"]}`,
		"loop of plans": `{"steps":[{"id":"l","repeat":{"max":2400},"arguments":{"n":"$last.n"},"plan":{"steps":[{"id":"a","tool":"t","arguments":{"n":"$input.n"}},{"id":"b","tool":"t","arguments":{"n":"$ref:a.n"}}],"output":{"n":"$ref:b.n"}}}],"output_steps":["l"]}`,
		"whole results": `{"steps":[{"id":"l","repeat":{"max":2400},"arguments":{"n":"$last.b.n"},"plan":{"steps":[{"id":"a","tool":"t","arguments":{"n":"$input.n"}},{"id":"v","value":{"of":"$ref:a"}},{"id":"b","tool":"t","arguments":{"n":"$ref:v.of.n"}}]}}],"output":{"n":"$ref:l.b.n"}}`,
		"scopes":        `{"steps":[` + strings.Join(scopes, ",") + `],"output":{"last":"$ref:s999"}}`,
	}
}

// TestWhatARunHoldsIsFlat: however much the calls in iterations and sub-plans returned, a run that lets go of it holds a few
// megabytes, and one that doesn't holds all.
func TestWhatARunHoldsIsFlat(t *testing.T) {
	for name, body := range heldShapes() {
		t.Run(name, func(t *testing.T) {
			const size = 20 << 10
			most := func(letGo bool) (most, all int64) {
				before := inMemory()
				x := feed(t, body, size, letGo, func(x *fed) {
					if all += size; x.seq%500 == 0 {
						most = max(most, inMemory()-before)
					}
				})
				runtime.KeepAlive(x)
				return most, all
			}
			held, all := most(true)
			t.Logf("%d MiB were returned, %d KiB were in memory at most", all>>20, held>>10)
			require.Less(t, held, int64(12<<20))
			whole, _ := most(false)
			t.Logf("%d KiB where nothing is let go of", whole>>10)
			require.Greater(t, whole, all*9/10)
		})
	}
}

// TestACollectedListIsKept: what a loop collects is derived as long as it is small enough for that, and read from the
// records where it is larger: whoever let go of what, it is the same.
func TestACollectedListIsKept(t *testing.T) {
	body := `{"steps":[{"id":"l","tool":"t","repeat":{"max":%d,"collect":true}}],"output_steps":["l"]}`
	few := feed(t, fmt.Sprintf(body, 12), 20<<10, false, func(x *fed) { machine.LetGo(x.m, 0, never, unlisted) })
	require.Zero(t, machine.Away(few.m), "the list has less than 256 KiB")
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal(few.m.Value(0), &list))
	require.Len(t, list, 12)
}

// TestRecordsAreAppliedOnceAllIsThere: a machine that is to compute its state anew, and has let go of values, asks for
// nothing until it has them back, whatever it is told meanwhile.
func TestRecordsAreAppliedOnceAllIsThere(t *testing.T) {
	p := parsed(t, `{"steps":[{"id":"l","tool":"t","arguments":{"n":"$last.n"},"repeat":{"max":9}},{"id":"z","tool":"t"}],"output_steps":["l"]}`)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}})
	var e machine.Effects
	record := func(token string, seq uint64) {
		e.Reset()
		c, there := m.Find(token)
		require.True(t, there, token)
		m.Apply(machine.Record{Seq: seq, Time: at, Result: &machine.Result{Call: c, Attempt: 1, Body: fmt.Appendf(nil, `{"n":%d}`, seq)}}, at, &e)
	}
	m.Begin(&e)
	for n := range 5 {
		record(fmt.Sprintf("l/=%d", n), uint64(10+n))
	}
	machine.LetGo(m, 0, never, unlisted)
	require.Len(t, machine.MissingOf(m, nil), 4, "all but the last, to which the next refers")
	require.Equal(t, int64(4*len(`{"n":10}`)), machine.Away(m))
	require.False(t, machine.Recalls(m))

	record("z", 7) // which stands before all others
	require.True(t, machine.Recalls(m))
	asksNothing := func() {
		t.Helper()
		require.Empty(t, e.Dispatch)
		require.Empty(t, e.Settled)
		require.Nil(t, e.Stop)
	}
	asksNothing()
	record("l/=5", 20)
	asksNothing()
	m.Tick(at.Add(1000*time.Hour), &e)
	m.Outstanding(at, &e)
	machine.Recall(m, at, &e)
	asksNothing()
	require.Zero(t, m.NextDeadline())
	for _, res := range machine.MissingOf(m, nil) {
		machine.GiveBack(m, res, fmt.Appendf(nil, `{"n":%d}`, 10+res.Call.Step-2))
	}
	machine.Recall(m, at, &e)
	require.False(t, machine.Recalls(m))
	require.Len(t, e.Dispatch, 1)
	require.Equal(t, "l/=6", m.Token(e.Dispatch[0].Call))
	require.Equal(t, `{"n":20}`, string(m.Origin(e.Dispatch[0].Call).Last.Value))
	require.Zero(t, machine.Away(m))
	require.NotZero(t, m.NextDeadline())
}

// roundsFed is an agent whose rounds run calls that return something of some bytes.
type roundsFed struct {
	t         testing.TB
	m         *machine.Run
	seq       uint64
	e         machine.Effects
	letGo     func(m *machine.Run)
	templates map[string]*plan.Template
	contracts map[string]*tool.Contract
}

func feedRounds(t testing.TB, letGo func(m *machine.Run)) *roundsFed {
	x := &roundsFed{
		t: t, letGo: letGo, templates: map[string]*plan.Template{"agent": {Name: "agent", Agent: &plan.Agent{Planner: "planner", MaxRounds: 400}}},
		contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}},
	}
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"agent"}]}`), nil, plan.Limits{Templates: x.templates})
	require.NotNil(t, p, "%v", report.Problems)
	x.m = machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: x.contracts})
	x.m.Begin(&x.e)
	return x
}

func (x *roundsFed) apply(rec machine.Record) {
	x.e.Reset()
	x.seq++
	rec.Seq, rec.Time = x.seq, epoch
	x.m.Apply(rec, epoch, &x.e)
	x.letGo(x.m)
}

// returns records what a call has returned.
func (x *roundsFed) returns(token string, value []byte) {
	c, there := x.m.Find(token)
	require.True(x.t, there, token)
	x.apply(machine.Record{Result: &machine.Result{Call: c, Attempt: 1, Body: value}})
}

// round records what a planner has answered, after those who wait for earlier rounds have got them.
func (x *roundsFed) round(n int, body string, earlier ...machine.Earlier) {
	x.returns(fmt.Sprintf("a/=%d/=plan", n), filled(5<<10))
	p, report := plan.ParseLimited([]byte(body), nil, plan.Limits{Templates: x.templates, Language2: true})
	require.NotNil(x.t, p, "%v", report.Problems)
	d := &machine.Round{Scope: fmt.Sprintf("a/=%d", n), Contracts: x.contracts, Plan: p, Earlier: earlier}
	for _, res := range machine.MissingOf(x.m, d) {
		machine.GiveBack(x.m, res, []byte(`{"n":`+strings.TrimSuffix(strings.TrimPrefix(x.m.Token(res.Call), "a/="), "/x")+`}`))
	}
	x.apply(machine.Record{Round: d})
}

// TestRoundsAreLetGoOf: of an agent of many rounds the last are in memory, and what the last one refers to.
func TestRoundsAreLetGoOf(t *testing.T) {
	const rounds, calls, size = 300, 8, 5 << 10
	held := func(letGo func(m *machine.Run)) (most int64) {
		before := inMemory()
		x := feedRounds(t, letGo)
		for n := range rounds {
			var steps []string
			for i := range calls {
				steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"t"}`, i))
			}
			x.round(n, `{"steps":[`+strings.Join(steps, ",")+`]}`)
			for i := range calls {
				x.returns(fmt.Sprintf("a/=%d/s%d", n, i), filled(size))
			}
			if n%20 == 19 {
				most = max(most, inMemory()-before)
			}
		}
		runtime.KeepAlive(x)
		return most
	}
	few := held(func(m *machine.Run) { machine.LetGo(m, 1<<20, never, unlisted) })
	all := held(func(*machine.Run) {})
	whole := held(func(m *machine.Run) {
		machine.LetGo(m, 1<<20, func(machine.Call, machine.Call) bool { return true }, unlisted)
	})
	t.Logf("of %d KiB that were returned, %d KiB are in memory at most, %d where nothing is let go of, %d where requests are whole", rounds*(calls+1)*size>>10, few>>10, all>>10, whole>>10)
	require.Less(t, few, int64(rounds*(calls+1)*size/2))
	require.Greater(t, all, int64(rounds*(calls+1)*size))
	require.Greater(t, whole, int64(rounds*(calls+1)*size), "what each request has in it stays")
}

// TestARoundKeepsWhatItRefersTo: what a round was given back of an earlier one stays until the round is over, for it may be
// derived from later.
func TestARoundKeepsWhatItRefersTo(t *testing.T) {
	x := feedRounds(t, func(m *machine.Run) { machine.LetGo(m, 0, never, unlisted) })
	for n := range 6 {
		x.round(n, `{"steps":[{"id":"x","tool":"t"}]}`)
		x.returns(fmt.Sprintf("a/=%d/x", n), fmt.Appendf(nil, `{"n":%d}`, n))
	}
	require.NotZero(t, machine.Away(x.m))
	x.round(6, `{"steps":[{"id":"r0","tool":"r0"},{"id":"w","tool":"t"},{"id":"v","value":["$ref:r0.x.n","$ref:w.n"]}],"output":"$ref:v"}`, machine.Earlier{Step: "r0", Round: 0, IDs: []string{"x"}})
	x.returns("a/=6/w", []byte(`{"n":7}`))
	require.True(t, x.m.Finished())
	require.Equal(t, `[0,7]`, string(x.m.Value(0)))
}

// TestAnAmendedRoundIsGivenBackWhatItReaches: what an amendment refers to of an earlier round, and the round's answer did not, is
// read again before it is applied, and stays as what the answer refers to.
func TestAnAmendedRoundIsGivenBackWhatItReaches(t *testing.T) {
	x := feedRounds(t, func(m *machine.Run) { machine.LetGo(m, 0, never, unlisted) })
	for n := range 6 {
		x.round(n, `{"steps":[{"id":"x","tool":"t"},{"id":"y","tool":"t"}]}`)
		x.returns(fmt.Sprintf("a/=%d/x", n), fmt.Appendf(nil, `{"n":%d}`, n))
		x.returns(fmt.Sprintf("a/=%d/y", n), fmt.Appendf(nil, `{"n":%d}`, 10+n))
	}
	x.round(6, `{"steps":[{"id":"r0","tool":"r0"},{"id":"w","tool":"t"},{"id":"v","value":["$ref:r0.x.n","$ref:w.n"]}],"output":["$ref:v"]}`, machine.Earlier{Step: "r0", Round: 0, IDs: []string{"x"}})
	a := &machine.Amendment{
		Scope: "a/=6", Revision: 1, Digest: "d", Add: []json.RawMessage{[]byte(`{"id":"u","value":{"x":"$ref:r0.x.n","y":"$ref:r0.y.n","w":"$ref:w.n"}}`)},
		Admitted: admitted(nil, nil, nil, map[string][]string{"r0": {"y"}}),
	}
	a.Admitted.Direct = []string{"u"}
	missing := machine.MissingFor(x.m, a)
	require.Len(t, missing, 1)
	require.Equal(t, "a/=0/y", x.m.Token(missing[0].Call))
	machine.GiveBack(x.m, missing[0], []byte(`{"n":10}`))
	x.apply(machine.Record{Amendment: a})
	require.True(t, a.InForce(), "%v", a.Stale())
	require.Empty(t, machine.MissingFor(x.m, a), "it stays")
	x.returns("a/=6/w", []byte(`{"n":7}`))
	require.True(t, x.m.Finished())
	require.JSONEq(t, `{"x":0,"y":10,"w":7}`, string(x.m.Value(0)))
}
