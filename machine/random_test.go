package machine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// rootCall stands for the plan as a whole.
var rootCall = machine.Call{Step: machine.ThePlan}

var worlds = flag.Int("worlds", 4000, "random runs of each kind")

// world plays ledger, workers and owner around a machine: records are created once, dispatched attempts are executed in
// random order, effects are forgotten or carried out twice.
type world struct {
	*rand.Rand
	c        reference.Case
	plan     *plan.Plan
	start    machine.Start
	now      time.Time
	ledger   []machine.Record
	decided  map[attempt]bool
	stopped  bool
	out      []attempt        // dispatched
	lists    []int            // for_each steps to be counted
	judge    []int            // steps whose condition is to be read from blobs
	derive   []machine.Derive // steps whose value is to be made of blobs
	told     map[telling]bool
	shape    bool                    // the output is to be made of blobs
	shaped   []byte                  // what was told of it, where that lies in a blob
	blobs    map[machine.Call][]byte // results that lie in blobs
	liar     bool                    // what is told of a condition need not be so: the record counts
	asked    []machine.Decide
	stop     *machine.Stop
	executed map[attempt]int
	args     map[machine.Call][]byte
	people   people
}

// telling is what a record tells of a step: its condition, or its value.
type telling struct {
	step  int
	value bool
}

type attempt struct {
	machine.Call
	number int
}

func newWorld(t testing.TB, seed int64, o reference.Options) *world {
	rng := rand.New(rand.NewSource(seed))
	c := reference.Generate(rng, o)
	p, report := plan.Parse(c.Plan, nil)
	require.NotNil(t, p, "seed %d: %v\n%s", seed, report.Problems, c.Plan)
	contracts := map[string]*tool.Contract{}
	for name, k := range c.Contracts {
		contracts[name] = &tool.Contract{MaxAttempts: k.MaxAttempts, Limit: 1, ErrorPropagation: tool.FailFast}
		if k.PartialSuccess {
			contracts[name].ErrorPropagation = tool.PartialSuccess
		}
		contracts[name].Approval, contracts[name].Asks = tool.Approval(k.Approval), k.Asks
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &world{
		Rand: rng, c: c, plan: p, start: machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: contracts}, now: at,
		decided: map[attempt]bool{}, executed: map[attempt]int{}, args: map[machine.Call][]byte{},
		told: map[telling]bool{}, blobs: map[machine.Call][]byte{}, people: newPeople(),
	}
}

func (w *world) take(e *machine.Effects) {
	for _, d := range e.Dispatch {
		w.out = append(w.out, attempt{d.Call, d.Attempt})
	}
	for _, step := range e.Expand {
		if !slices.Contains(w.lists, step) { // every list that was counted has the rest asked for again
			w.lists = append(w.lists, step)
		}
	}
	w.judge, w.derive = append(w.judge, e.Judge...), append(w.derive, e.Derive...)
	w.shape = w.shape || len(e.Shape) > 0
	w.asked = append(w.asked, e.Decide...)
	w.people.take(e)
	if e.Stop != nil {
		w.stop = e.Stop
	}
}

// create adds a record unless its subject is taken.
func (w *world) create(rec machine.Record) bool {
	switch {
	case rec.Stop != nil && w.stopped:
		return false
	case rec.Stop != nil:
		w.stopped = true
	case rec.Answer != nil:
		if !w.people.once(rec.Answer) {
			return false
		}
	case rec.Told != nil && rec.Told.Approval:
		if w.people.weighed[rec.Told.Call] != nil {
			return false
		}
		w.people.weighed[rec.Told.Call] = rec.Told
	case rec.Told != nil:
		key := telling{rec.Told.Step, rec.Told.Value != nil}
		if w.told[key] {
			return false
		}
		w.told[key] = true
	default:
		key := attempt{rec.Result.Call, rec.Result.Attempt}
		if w.decided[key] {
			return false
		}
		w.decided[key] = true
	}
	w.now = w.now.Add(time.Duration(1+w.Intn(1000)) * time.Millisecond)
	rec.Seq, rec.Time = uint64(2*len(w.ledger)+10), w.now
	w.ledger = append(w.ledger, rec)
	return true
}

// checkRoom makes sure that no more calls are ready at once than the plan allows.
func (w *world) checkRoom(t testing.TB, m *machine.Run) {
	if w.plan.Concurrency == 0 {
		return
	}
	ready := 0
	count := func(c machine.Call) {
		st := m.Step(c, w.now).Status
		if st == outcome.StepRetrying || st == outcome.StepReady && !(c.Item == 0 && m.Expanding(c.Step)) {
			ready++
		}
	}
	for i := range w.plan.Steps {
		n, _ := m.Items(i)
		for item := 0; item <= n; item++ {
			count(machine.Call{Step: i, Item: item})
		}
	}
	require.LessOrEqual(t, ready, w.plan.Concurrency, "%s", w.c.Plan)
}

// tellShape records what the plan comes to whose output has to read blobs.
func (w *world) tellShape(m *machine.Run) {
	if w.shape = false; !m.Shaping(rootCall) {
		return
	}
	res := &machine.Result{Call: rootCall, Attempt: 1, ByOwner: true}
	value, err := w.plan.NewResolver().Fates(m.Fate).Output(m.Lenient(rootCall), w.valuesOf(m))
	if res.Error = err; err == nil && w.Intn(2) == 0 {
		w.shaped, res.Handle = value, &outcome.Handle{Size: int64(len(value)), Checked: true}
	} else if err == nil {
		res.Body = value
	}
	w.create(machine.Record{Told: &machine.Told{Call: machine.Call{Step: machine.ThePlan}, Output: res}})
}

// arguments resolves those of a call, as an orchestrator would.
func (w *world) arguments(m *machine.Run, c machine.Call) ([]byte, *fault.Error) {
	values, r := w.valuesOf(m), w.plan.NewResolver().Fates(m.Fate)
	if edited := m.Arguments(c); edited != nil {
		return edited, nil
	}
	if c.Item == 0 {
		return r.Arguments(c.Step, values)
	}
	list, err := r.Items(c.Step, values)
	if err != nil {
		return nil, err
	}
	return r.ItemArguments(c.Step, list[c.Item-1], values)
}

// execute resolves and runs one dispatched attempt, as orchestrator and worker would.
func (w *world) execute(t testing.TB, m *machine.Run, key attempt) {
	p, c := &w.plan.Steps[key.Step], key.Call
	w.people.mayBegin(t, w, m, c)
	args, err := w.arguments(m, c)
	if err != nil {
		w.create(machine.Record{Result: &machine.Result{Call: c, Attempt: key.number, Error: err, ByOwner: true}})
		return
	}
	w.args[c] = args
	w.executed[key]++
	reply := w.c.Call(w.token(c), p.Tool, args, key.number)
	res := &machine.Result{Call: c, Attempt: key.number, Body: reply.Body, Text: reply.Text, Worker: "w"}
	if reply.Err != nil {
		res.Error = &fault.Error{Code: fault.Code(reply.Err.Code), Message: reply.Err.Message, Retryable: reply.Err.Retryable}
	}
	w.people.hears(t, w, m, key)
	if reply.Asks {
		res.Asks = &machine.Asks{Body: fmt.Appendf(nil, `{"question":"in attempt %d?"}`, key.number)}
	} else if w.plan.Language > 1 && w.Intn(4) == 0 {
		w.intoBlob(res)
	}
	w.create(machine.Record{Result: res})
}

// intoBlob puts a result where the machine does not see it.
func (w *world) intoBlob(res *machine.Result) {
	value, err := plan.Output(res.Body, res.Text)
	if res.Error != nil || err != nil {
		return
	}
	w.blobs[res.Call] = value
	res.Body, res.Text, res.Handle = nil, false, &outcome.Handle{Size: int64(len(value)), Checked: true}
}

func (w *world) valuesOf(m *machine.Run) func(dep int) ([]byte, bool) {
	return func(dep int) ([]byte, bool) {
		v := w.value(m, dep)
		return v, v != nil
	}
}

// value is Run.Value, with what lies in blobs.
func (w *world) value(m *machine.Run, step int) []byte {
	if m.Result(machine.Call{Step: step}) == nil {
		return nil
	}
	if v := m.Value(step); v != nil {
		return v
	}
	n, isList := m.Items(step)
	if !isList {
		return w.blobs[machine.Call{Step: step}]
	}
	entries := make([]plan.Item, n)
	for i := range entries {
		c := machine.Call{Step: step, Item: i + 1}
		x := m.Decided(c)
		if entries[i] = (plan.Item{Data: x.Value, Error: x.Error}); x.Handle != nil {
			entries[i].Data = w.blobs[c]
		}
	}
	all, _ := plan.Entries(entries)
	return all
}

// tell records what a condition comes to that reads blobs. A liar tells anything: nobody may find out for himself.
func (w *world) tell(m *machine.Run, step int) {
	if m.Asks(step) != machine.AskedCondition {
		return
	}
	told := machine.Told{Call: machine.Call{Step: step}}
	told.Holds, told.Error = w.plan.Steps[step].If.Holds(w.plan, nil, w.valuesOf(m), m.Fate)
	if w.liar && w.Intn(2) == 0 {
		told = machine.Told{Call: machine.Call{Step: step}, Holds: w.Intn(2) == 0}
		if w.Intn(4) == 0 {
			told.Error = fault.New(fault.ConditionFailed, "it can't be read")
		}
	}
	w.create(machine.Record{Told: &told})
}

// build records what a value comes to that is made of blobs, and puts some into a blob themselves.
func (w *world) build(m *machine.Run, step int, room int64) {
	if m.Asks(step) != machine.AskedValue {
		return
	}
	effort := plan.FullEffort
	value, err := w.plan.NewResolver().Fates(m.Fate).Derive(step, room, &effort, w.valuesOf(m))
	if w.liar && w.Intn(2) == 0 {
		value, err = []byte(`[1,{"x":"told"}]`), nil
		if w.Intn(4) == 0 {
			err = fault.New(fault.UnresolvedRef, "it can't be read")
		}
	}
	res := &machine.Result{Value: value, Size: int64(len(value)), Error: err}
	key := telling{step, true}
	if err == nil && w.Intn(2) == 0 && !w.told[key] {
		w.blobs[machine.Call{Step: step}] = value
		res.Value, res.Handle = nil, &outcome.Handle{Size: res.Size, Checked: true}
	}
	w.create(machine.Record{Told: &machine.Told{Call: machine.Call{Step: step}, Value: res}})
}

func (w *world) token(c machine.Call) string {
	if c.Item == 0 {
		return w.plan.Steps[c.Step].ID
	}
	return subjects.ItemToken(w.plan.Steps[c.Step].ID, c.Item-1)
}

// expand counts the list of a for_each step, or records that there is none.
func (w *world) expand(m *machine.Run, step int, e *machine.Effects) {
	if !m.Expanding(step) {
		return
	}
	list, err := w.plan.NewResolver().Fates(m.Fate).Items(step, w.valuesOf(m))
	if err != nil {
		w.create(machine.Record{Result: &machine.Result{Call: machine.Call{Step: step}, Attempt: 1, Error: err, ByOwner: true}})
		return
	}
	m.Expand(step, len(list), w.now, e)
}

// run drives a machine until the run is over. cancelAt is the number of records before a cancel; negative for none.
func (w *world) run(t testing.TB, cancelAt int) *machine.Run {
	m := machine.New(w.plan, w.start)
	var e machine.Effects
	m.Begin(&e)
	w.take(&e)
	read := 0
	for turns := 0; !m.Finished(); turns++ {
		require.Less(t, turns, 100_000, "the run doesn't end: %s", w.c.Plan)
		if len(w.ledger) == cancelAt && !w.stopped {
			w.create(machine.Record{Stop: &machine.Stop{Reason: outcome.Cancelled, By: "test"}})
		}
		switch {
		case len(w.lists) > 0 && w.Intn(3) == 0: // sooner or later than the records that come meanwhile
			step := w.lists[0]
			w.lists = w.lists[1:]
			e.Reset()
			w.expand(m, step, &e)
			w.take(&e)
		case read < len(w.ledger) && (w.Intn(3) > 0 || w.idle()):
			e.Reset()
			asked := openQuestions(m)
			m.Apply(copied(w.ledger[read]), w.now, &e)
			w.people.closed(m, asked)
			w.take(&e)
			if w.Intn(4) == 0 { // again: nothing may change
				before := asks(&e)
				m.Apply(copied(w.ledger[w.Intn(read+1)]), w.now, &e)
				require.Equal(t, before, asks(&e), "a duplicate record had effects")
			}
			read++
		case len(w.judge) > 0 && w.Intn(3) == 0:
			step := w.judge[0]
			w.judge = w.judge[1:]
			w.tell(m, step)
		case len(w.derive) > 0 && w.Intn(3) == 0:
			d := w.derive[0]
			w.derive = w.derive[1:]
			w.build(m, d.Step, d.Room)
		case w.shape && w.Intn(3) == 0:
			w.tellShape(m)
		case w.people.wait() && w.Intn(3) == 0:
			e.Reset()
			w.consult(m, &e)
			w.take(&e)
		case len(w.asked) > 0:
			d := w.asked[0]
			w.asked = w.asked[1:]
			w.create(machine.Record{Result: &machine.Result{Call: d.Call, Attempt: d.Attempt, Error: d.Error, ByOwner: true}})
		case len(w.out) > 0:
			i := w.Intn(len(w.out))
			key := w.out[i]
			w.out = slices.Delete(w.out, i, i+1)
			w.execute(t, m, key)
		case len(w.lists)+len(w.judge)+len(w.derive) > 0 || w.shape || w.people.wait():
		default: // forgotten effects: the sweep
			e.Reset()
			m.Outstanding(w.now, &e)
			w.take(&e)
			require.False(t, w.idle(), "stuck: %s", w.c.Plan)
		}
		w.checkRoom(t, m)
		if w.Intn(10) == 0 { // a crash: what was asked for is forgotten, state is read anew
			w.out, w.asked, w.lists, w.judge, w.derive, w.shape = nil, nil, nil, nil, nil, false
			w.people.forget()
			m = machine.New(w.plan, w.start)
			e.Reset()
			m.Begin(&e)
			for _, rec := range w.ledger[:read] {
				m.Apply(copied(rec), w.now, &e)
			}
			e.Reset()
			m.Outstanding(w.now, &e)
			w.take(&e)
		}
	}
	for ; read < len(w.ledger); read++ { // what comes after the end changes nothing
		e.Reset()
		m.Apply(copied(w.ledger[read]), w.now, &e)
		require.Empty(t, e.Dispatch)
	}
	return m
}

// idle is whether nothing is asked for.
func (w *world) idle() bool {
	return len(w.out)+len(w.asked)+len(w.lists)+len(w.judge)+len(w.derive) == 0 && !w.shape && !w.people.wait()
}

// asks counts what is asked for.
func asks(e *machine.Effects) int {
	return len(e.Dispatch) + len(e.Decide) + len(e.Settled) + len(e.Expand) + len(e.Judge) + len(e.Derive) + len(e.Ask) + len(e.Weigh) + len(e.Expire) + len(e.Shape)
}

// copied returns a record as the ledger has it; Apply owns what it is given.
func copied(rec machine.Record) machine.Record {
	if rec.Result != nil {
		clone := *rec.Result
		rec.Result = &clone
	}
	if rec.Told != nil {
		told := *rec.Told
		if rec.Told = &told; told.Output != nil {
			clone := *told.Output
			told.Output = &clone
		}
	}
	if a := rec.Answer; a != nil {
		answer := *a
		rec.Answer = &answer
	}
	if a := rec.Amendment; a != nil {
		rec.Amendment = &machine.Amendment{
			Scope: a.Scope, Revision: a.Revision, Add: a.Add, Discard: a.Discard, Rest: a.Rest, Output: a.Output,
			OutputSteps: a.OutputSteps, Close: a.Close, Contracts: a.Contracts, Digest: a.Digest, Approved: a.Approved,
		}
	}
	return rec
}

// same compares JSON by value, with the exact digits of its numbers: text in templates may be escaped in several ways.
func same(t testing.TB, want, got []byte, format string, args ...any) {
	t.Helper()
	read := func(b []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		require.NoError(t, d.Decode(&v), "%s", b)
		return v
	}
	require.Equal(t, read(want), read(got), format, args)
}

// decidedList returns the ledger as the reference wants it.
func (w *world) decidedList() []reference.Decided {
	var list []reference.Decided
	for _, rec := range w.ledger {
		if rec.Stop != nil {
			list = append(list, reference.Decided{Stop: string(rec.Stop.Reason)})
			continue
		}
		if rec.Answer != nil || rec.Told != nil && rec.Told.Approval {
			list = append(list, w.decidedByPeople(rec))
			continue
		}
		if x := rec.Told; x != nil && x.Value != nil {
			told := &reference.ToldValue{JSON: x.Value.Value, Blob: x.Value.Handle != nil}
			if told.Blob {
				told.JSON = w.blobs[machine.Call{Step: x.Step}]
			}
			if err := x.Value.Error; err != nil {
				told.Err = &reference.Err{Code: string(err.Code), Message: err.Message}
			}
			list = append(list, reference.Decided{Step: w.plan.Steps[x.Step].ID, Value: told})
			continue
		}
		if x := rec.Told; x != nil && x.Output != nil {
			continue // it was told right
		}
		if x := rec.Told; x != nil {
			told := &reference.Told{Holds: x.Holds}
			if x.Error != nil {
				told.Err = &reference.Err{Code: string(x.Error.Code), Message: x.Error.Message}
			}
			list = append(list, reference.Decided{Step: w.plan.Steps[x.Step].ID, Told: told})
			continue
		}
		r := rec.Result
		d := reference.Decided{Step: w.token(r.Call), ByOwner: r.ByOwner, Reply: reference.Reply{Body: r.Body, Text: r.Text, Asks: r.Asks != nil}}
		if r.Handle != nil {
			d.Blob, d.Reply.Body = true, w.blobs[r.Call]
		}
		if r.Error != nil {
			d.Reply.Err = &reference.Err{Code: string(r.Error.Code), Message: r.Error.Message, Retryable: r.Error.Retryable}
		}
		list = append(list, d)
	}
	return list
}

func compare(t testing.TB, what string, w *world, m *machine.Run, want *reference.Result, strictMessages bool) {
	t.Helper()
	got := m.Outcome("r", func(step int) []byte { return w.value(m, step) })
	require.Equal(t, want.Status, string(got.Status), "%s: %s", what, w.c.Plan)
	require.Len(t, got.Results, len(want.Results), "%s: %s", what, w.c.Plan)
	for i, r := range want.Results {
		require.Equal(t, r.Step, got.Results[i].Step, what)
		same(t, r.JSON, got.Results[i].JSON, "%s: result of %s in %s", what, r.Step, w.c.Plan)
	}
	require.Len(t, got.Errors, len(want.Errors), "%s: %v\n%s", what, got.Errors, w.c.Plan)
	for i, e := range want.Errors {
		g := got.Errors[i]
		if at, is := w.plan.Index(e.Step); is && strictMessages && w.plan.Steps[at].ForEach != nil {
			e.Attempts = g.Attempts // of how many items were executed before one failed fast, the order decides
		}
		require.Equal(t, []any{e.Step, e.Code, e.Attempts, e.HandledBy}, []any{g.Step, string(g.Code), g.Attempts, g.HandledBy}, "%s: %s", what, w.c.Plan)
		if e.Code == "skipped" || strictMessages && e.Code == "tool_failed" {
			require.Equal(t, e.Message, g.Message, "%s: %s", what, w.c.Plan)
		}
	}
	if x := m.Output(); x != nil && x.Handle != nil {
		got.Output = w.shaped
	}
	require.Equal(t, want.Output == nil, got.Output == nil, "%s: output in %s", what, w.c.Plan)
	if want.Output != nil {
		same(t, want.Output, got.Output, "%s: output in %s", what, w.c.Plan)
	}
	require.Equal(t, want.NotTaken, got.NotTaken, "%s: %s", what, w.c.Plan)
	for i := range w.plan.Steps {
		require.Equal(t, want.Steps[w.plan.Steps[i].ID].Status, string(m.StepStatus(i)), "%s: step %s of %s", what, w.plan.Steps[i].ID, w.c.Plan)
	}
}

// TestRandomPlansMatchTheReference runs random plans under lost, repeated and reordered effects and records, with
// crashes, and compares with the sequential twin.
func TestRandomPlansMatchTheReference(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	counted := map[string]int{}
	for seed := range int64(n) {
		o := reference.Options{Steps: 4 + int(seed%25), NoFailures: seed%7 == 0, ForEach: seed%2 == 0, Second: seed%3 > 0, Codes: true, Questions: seed%5 < 2}
		w := newWorld(t, seed, o)
		m := w.run(t, -1)
		want, err := reference.RunAsking(w.c.Plan, w.c.Contracts, w.c.Call, w.c.Say)
		require.NoError(t, err, "seed %d: %s", seed, w.c.Plan)
		compare(t, fmt.Sprintf("seed %d", seed), w, m, want, true)
		for i := range w.plan.Steps {
			if a := want.Steps[w.plan.Steps[i].ID].Arguments; a != nil {
				same(t, a, w.args[machine.Call{Step: i}], "seed %d: arguments of %s", seed, w.plan.Steps[i].ID)
			}
		}
		shuffled(t, w, m)
		counted[want.Status]++
		w.people.count(counted)
	}
	for _, what := range append(whatPeopleDid, "succeeded", "partial", "failed", "cancelled") {
		require.NotZero(t, counted[what], "no random run came to %s: %v", what, counted)
	}
}

// shuffled gives the same records in another order, some twice: the state must be the same.
func shuffled(t testing.TB, w *world, m *machine.Run) {
	t.Helper()
	again := machine.New(w.plan, w.start)
	var e machine.Effects
	finished := 0
	records := append(append([]machine.Record{}, w.ledger...), w.ledger[:len(w.ledger)/2]...)
	w.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	again.Begin(&e)
	for _, rec := range append([]machine.Record{{}}, records...) {
		if rec.Seq > 0 {
			e.Reset()
			again.Apply(copied(rec), w.now, &e)
		}
		w.count(again, &e)
		if e.Finished {
			finished++
		}
	}
	require.True(t, again.Finished(), "%s", w.c.Plan)
	if len(w.told)+len(w.people.answers)+len(w.people.weighed) == 0 { // a stop that is read before what was told, or answered, ends more than it did
		require.Equal(t, 1, finished)
	}
	value := func(m *machine.Run) machine.Values { return func(step int) []byte { return w.value(m, step) } }
	require.Equal(t, string(m.Outcome("r", value(m)).JSON()), string(again.Outcome("r", value(again)).JSON()))
}

// count answers at once what is asked of for_each steps, where they have lists.
func (w *world) count(m *machine.Run, e *machine.Effects) {
	for lists := slices.Clone(e.Expand); len(lists) > 0; lists = lists[1:] {
		if !m.Expanding(lists[0]) {
			continue
		}
		if list, err := w.plan.NewResolver().Fates(m.Fate).Items(lists[0], w.valuesOf(m)); err == nil {
			m.Expand(lists[0], len(list), w.now, e)
			lists = append(lists, e.Expand...)
		}
	}
}

// TestStoppedRunsMatchTheReference does the same for plans that fail fast and for runs that are cancelled in between.
func TestStoppedRunsMatchTheReference(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	counted := map[string]int{}
	for seed := range int64(n) {
		w := newWorld(t, 1_000_000+seed, reference.Options{Steps: 4 + int(seed%25), Stop: true, ForEach: seed%2 == 0, Second: seed%3 > 0, Codes: true, Questions: seed%5 < 2})
		w.liar = true
		cancelAt := -1
		if seed%2 == 0 {
			cancelAt = w.Intn(len(w.plan.Steps) + 1)
		}
		m := w.run(t, cancelAt)
		want, err := reference.RunStopped(w.c.Plan, w.c.Contracts, w.decidedList())
		require.NoError(t, err, "seed %d: %s", seed, w.c.Plan)
		compare(t, fmt.Sprintf("seed %d", seed), w, m, want, false)
		shuffled(t, w, m)
		for _, s := range want.Steps {
			counted[s.Status]++
		}
		counted["run "+want.Status]++
		w.people.count(counted)
	}
	for _, status := range []string{"ended while somebody was asked", "cancelled", "skipped", "failed", "run cancelled", "run partial", "run failed"} {
		require.NotZero(t, counted[status], "nothing came to %s: %v", status, counted)
	}
}
