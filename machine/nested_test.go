package machine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

var (
	nestTools     = reference.NestedTools{Echo: "echo", Flaky: "flaky", Broken: "broken", Text: "text"}
	nestContracts = map[string]reference.Contract{"flaky": {MaxAttempts: 2}}
)

// nestWorld plays ledger, workers and owner around a machine whose plan has plans within.
type nestWorld struct {
	*rand.Rand
	nested  *reference.Nested
	plan    *plan.Plan
	start   machine.Start
	now     time.Time
	ledger  []machine.Record // with tokens in place of numbers, which are another machine's
	created map[string]bool
	blobs   map[string][]byte
	lists   map[string][][]byte
	stopAt  int                  // records after which somebody cancels; negative for never
	hasty   bool                 // plans within it take too long now and then
	late    map[string]bool      // the records of that
	queue   []*machine.Amendment // that are still to be recorded
	people  *proposers           // of a plan that was submitted for an approval
	recalls int                  // how often all that was let go of was read again
}

func newNestWorld(t testing.TB, rng *rand.Rand, stop bool) *nestWorld {
	nested := reference.GenerateNested(rng, nestTools, stop)
	p, report := plan.Parse(nested.Plan, nil)
	require.NotNil(t, p, "%v\n%s", report.Problems, nested.Plan)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	contracts := map[string]*tool.Contract{}
	for _, name := range []string{"echo", "flaky", "broken", "text"} {
		contracts[name] = &tool.Contract{MaxAttempts: max(1, nestContracts[name].MaxAttempts), Limit: 1, ErrorPropagation: tool.FailFast}
	}
	return &nestWorld{
		Rand: rng, nested: nested, plan: p, now: at, start: machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: contracts},
		created: map[string]bool{}, blobs: map[string][]byte{}, lists: map[string][][]byte{}, late: map[string]bool{}, stopAt: -1,
	}
}

func (w *nestWorld) create(subject string, rec machine.Record) {
	if w.created[subject] {
		return
	}
	w.created[subject] = true
	w.now = w.now.Add(time.Millisecond)
	rec.Seq, rec.Time = uint64(len(w.ledger)+10), w.now
	w.ledger = append(w.ledger, rec)
	w.people.take(&rec)
}

// value returns what references to a step see, wherever it lies.
func (w *nestWorld) value(m *machine.Run, step int) []byte {
	if m.Result(machine.Call{Step: step}) == nil {
		return nil
	}
	if v := m.Value(step); v != nil {
		return v
	}
	n, isList := m.Items(step)
	if !isList {
		return w.apart(m, m.Result(machine.Call{Step: step}))
	}
	entries := make([]plan.Item, n)
	for i := range entries {
		c := machine.Call{Step: step, Item: i + 1}
		x := m.Decided(c)
		if entries[i] = (plan.Item{Data: x.Value, Error: x.Error}); x.Handle != nil || x.Away {
			entries[i].Data = w.apart(m, x)
		}
	}
	all, _ := plan.Entries(entries)
	return all
}

// resolver is one for the scope that a step stands in, and what references within it see.
func (w *nestWorld) resolver(
	m *machine.Run, step int,
) (r *plan.Resolver, p *plan.Plan, of machine.Numbers, result func(int) ([]byte, bool)) {
	p, of = m.Scope(step)
	r = p.NewResolver().Fates(func(d int) plan.Fate { return m.Fate(of.Of(d)) }).Input(func() ([]byte, bool) {
		value, away := m.Input(of.First())
		if away {
			value, _ = w.arguments(m, m.Composite(of.First()))
		}
		return value, value != nil
	})
	return r, p, of, func(d int) ([]byte, bool) {
		v := w.value(m, of.Of(d))
		return v, v != nil
	}
}

func (w *nestWorld) arguments(m *machine.Run, c machine.Call) ([]byte, *fault.Error) {
	o := m.Origin(c)
	r, _, _, result := w.resolver(m, o.Numbers.First())
	r.In(&nestTurn{w, m, o})
	if o.Of.Item == 0 {
		return r.Arguments(o.Step, result)
	}
	return r.ItemArguments(o.Step, w.lists[m.Token(machine.Call{Step: o.Of.Step})][o.Of.Item-1], result)
}

// nestTurn is an iteration as its arguments see it.
type nestTurn struct {
	w *nestWorld
	m *machine.Run
	o machine.Origin
}

func (x *nestTurn) Last() ([]byte, bool) {
	switch last := x.o.Last; {
	case last == nil:
		return []byte("null"), true
	case last.Handle != nil || last.Away:
		value := x.w.apart(x.m, last)
		return value, value != nil
	default:
		return last.Value, true
	}
}

func (x *nestTurn) Index() int { return x.o.Iteration }

// until tells whether a loop is over with an iteration.
func (w *nestWorld) until(m *machine.Run, c machine.Call) {
	if !m.Ends(c) {
		return
	}
	o := m.Origin(c)
	o.Last = m.Result(c)
	r, p, _, result := w.resolver(m, o.Numbers.First())
	r.In(&nestTurn{w, m, o})
	var item []byte
	if o.Of.Item > 0 {
		item = w.lists[m.Token(machine.Call{Step: o.Of.Step})][o.Of.Item-1]
	}
	told := &machine.Told{Token: m.Token(c), Until: true}
	told.Holds, told.Error = p.Steps[o.Step].Repeat.Until.HoldsOf(r, item, nil, result)
	w.create("until "+told.Token, machine.Record{Told: told})
}

func (w *nestWorld) execute(m *machine.Run, d machine.Dispatch) {
	if len(w.queue) > 0 && m.PlanStep(d.Step).Tool == gated {
		return // it is asked for again
	}
	token := m.Token(d.Call)
	res := &machine.Result{Token: &token, Attempt: d.Attempt, Worker: "w"}
	args, err := w.arguments(m, d.Call)
	if err != nil {
		res.Error, res.ByOwner = err, true
	} else if reply := w.nested.Call(token, m.PlanStep(d.Step).Tool, args, d.Attempt); reply.Err != nil {
		res.Error = &fault.Error{Code: fault.Code(reply.Err.Code), Message: reply.Err.Message, Retryable: reply.Err.Retryable}
	} else if value, _ := plan.Output(reply.Body, reply.Text); w.Intn(4) == 0 {
		w.blobs[token] = value
		res.Handle = &outcome.Handle{Name: token, Size: int64(len(value)), Checked: true}
	} else {
		res.Body, res.Text = reply.Body, reply.Text
	}
	w.create(fmt.Sprint("step ", token, d.Attempt), machine.Record{Result: res})
}

func (w *nestWorld) judge(m *machine.Run, step int) {
	if m.Asks(step) != machine.AskedCondition {
		return
	}
	r, p, of, result := w.resolver(m, step)
	token := m.Token(machine.Call{Step: step})
	told := &machine.Told{Token: token}
	told.Holds, told.Error = p.Steps[of.Step(step)].If.HoldsFor(r, nil, result)
	w.create("if "+token, machine.Record{Told: told})
}

func (w *nestWorld) derive(m *machine.Run, d machine.Derive) {
	if m.Asks(d.Step) != machine.AskedValue {
		return
	}
	r, _, of, result := w.resolver(m, d.Step)
	effort := plan.FullEffort
	value, err := r.Derive(of.Step(d.Step), d.Room, &effort, result)
	token, res := m.Token(machine.Call{Step: d.Step}), &machine.Result{Error: err, Size: int64(len(value))}
	if res.Value = value; err == nil && w.Intn(2) == 0 {
		w.blobs[token], res.Value, res.Handle = value, nil, &outcome.Handle{Name: token, Size: res.Size, Checked: true}
	}
	w.create("value "+token, machine.Record{Told: &machine.Told{Token: token, Value: res}})
}

func (w *nestWorld) shape(m *machine.Run, of machine.Call) {
	if !m.Shaping(of) {
		return
	}
	first, token := 0, ""
	var list [][]byte
	if of.Step != machine.ThePlan {
		for _, numbers := range m.Inside(of) {
			first = numbers.First()
			list = append(list, w.value(m, first))
		}
		token = m.Token(of)
	}
	r, _, _, result := w.resolver(m, first)
	res := &machine.Result{Attempt: 1, ByOwner: true}
	var value []byte
	var err *fault.Error
	if of.Step != machine.ThePlan && m.PlanStep(of.Step).Repeat != nil {
		value = slices.Concat([]byte("["), bytes.Join(list, []byte(",")), []byte("]"))
	} else {
		value, err = r.Output(m.Lenient(of), result)
	}
	if res.Error = err; err == nil && w.Intn(2) == 0 {
		w.blobs[token], res.Handle = value, &outcome.Handle{Name: token, Size: int64(len(value)), Checked: true}
	} else if err == nil {
		res.Body = value
	}
	w.create("output "+token, machine.Record{Told: &machine.Told{Call: rootCall, Token: token, Output: res}})
}

func (w *nestWorld) expand(m *machine.Run, step int, e *machine.Effects) {
	if !m.Expanding(step) {
		return
	}
	token := m.Token(machine.Call{Step: step})
	r, _, of, result := w.resolver(m, step)
	list, err := r.Items(of.Step(step), result)
	if err != nil {
		w.create(fmt.Sprint("step ", token, 1), machine.Record{Result: &machine.Result{Token: &token, Attempt: 1, Error: err, ByOwner: true}})
		return
	}
	w.lists[token] = list
	if m.PlanStep(step).Plan != nil {
		m.Elements(step, list)
	}
	m.Expand(step, len(list), w.now, e)
}

func (w *nestWorld) enter(m *machine.Run, c machine.Call, e *machine.Effects) {
	if !m.Entering(c) {
		return
	}
	if _, err := w.arguments(m, c); err != nil {
		token := m.Token(c)
		w.create(fmt.Sprint("step ", token, 1), machine.Record{Result: &machine.Result{Token: &token, Attempt: 1, Error: err, ByOwner: true}})
		return
	}
	m.Enter(c, w.now, e)
}

// pending is what a machine asked for.
type pending struct{ machine.Effects }

func (p *pending) add(e *machine.Effects) {
	p.Dispatch, p.Expand, p.Judge = append(p.Dispatch, e.Dispatch...), append(p.Expand, e.Expand...), append(p.Judge, e.Judge...)
	p.Shape, p.Decide, p.Enter = append(p.Shape, e.Shape...), append(p.Decide, e.Decide...), append(p.Enter, e.Enter...)
	p.Derive, p.Until = append(p.Derive, e.Derive...), append(p.Until, e.Until...)
	p.Ask = append(p.Ask, e.Ask...)
}

func (p *pending) count() int {
	return len(p.Dispatch) + len(p.Expand) + len(p.Judge) + len(p.Shape) + len(p.Decide) + len(p.Enter) + len(p.Derive) + len(p.Until) +
		len(p.Ask)
}

// read returns a record as an owner reads it: one of the plan's own steps by its number, as the shell knows it.
func (w *nestWorld) read(rec machine.Record) machine.Record {
	if rec.Result != nil {
		clone := *rec.Result
		rec.Result = &clone
		if at, is := w.plan.Index(*clone.Token); is {
			clone.Call, clone.Token = machine.Call{Step: at}, nil
			*rec.Result = clone
		}
	}
	return copied(rec)
}

// do carries out one of the things that a machine asked for.
func (w *nestWorld) do(m *machine.Run, p *pending, e *machine.Effects) {
	switch n := w.Intn(p.count()); {
	case n < len(p.Dispatch):
		d := p.Dispatch[n]
		p.Dispatch = slices.Delete(p.Dispatch, n, n+1)
		if m.Wanted(d.Call, d.Attempt) {
			w.execute(m, d)
		}
	case len(p.Ask) > 0 && w.Intn(3) == 0:
		c := p.Ask[0]
		p.Ask = p.Ask[1:]
		w.consult(m, c)
	case len(p.Expand) > 0:
		step := p.Expand[0]
		p.Expand = p.Expand[1:]
		w.expand(m, step, e)
	case len(p.Enter) > 0:
		c := p.Enter[0]
		p.Enter = p.Enter[1:]
		w.enter(m, c, e)
	case len(p.Judge) > 0:
		w.judge(m, p.Judge[0])
		p.Judge = p.Judge[1:]
	case len(p.Derive) > 0:
		w.derive(m, p.Derive[0])
		p.Derive = p.Derive[1:]
	case len(p.Until) > 0:
		w.until(m, p.Until[0])
		p.Until = p.Until[1:]
	case len(p.Shape) > 0:
		w.shape(m, p.Shape[0])
		p.Shape = p.Shape[1:]
	case len(p.Decide) == 0: // somebody thinks about it
	default:
		d := p.Decide[0]
		p.Decide = p.Decide[1:]
		token := m.Token(d.Call)
		w.create(fmt.Sprint("step ", token, d.Attempt), machine.Record{Result: &machine.Result{Token: &token, Attempt: d.Attempt, Error: d.Error, ByOwner: true}})
	}
}

// run drives a machine to the end of the run. It crashes now and then, and reads the ledger anew.
func (w *nestWorld) run(t testing.TB) *machine.Run {
	m, read := machine.New(w.plan, w.start), 0
	var e machine.Effects
	var p pending
	m.Begin(&e)
	p.add(&e)
	for turns := 0; !m.Finished(); turns++ {
		require.Less(t, turns, 20_000, "the run doesn't end: %v", accountOf(m))
		e.Reset()
		if len(w.ledger) == w.stopAt {
			w.create("stop", machine.Record{Stop: &machine.Stop{Reason: outcome.Cancelled, By: "test"}})
		}
		if w.hasty && w.Intn(8) == 0 {
			w.timeOut(m)
		}
		switch {
		case w.people.propose(w, m):
		case w.people == nil && len(w.queue) > 0 && (w.Intn(6) == 0 || read == len(w.ledger) && p.count() == 0):
			w.amendNext()
		case read < len(w.ledger) && w.Intn(3) > 0:
			m.Apply(w.read(w.ledger[read]), w.now, &e)
			read++
		case p.count() > 0:
			w.do(m, &p, &e)
		case read == len(w.ledger):
			m.Outstanding(w.now, &e)
			require.NotZero(t, len(e.Dispatch)+len(e.Expand)+len(e.Judge)+len(e.Shape)+len(e.Decide)+len(e.Enter)+len(e.Derive)+len(e.Until)+len(e.Ask), "stuck: %s", accountOf(m))
		}
		w.letGo(m, &e)
		p.add(&e)
		w.checkRoom(t, m)
		if w.Intn(60) == 0 {
			m, p = machine.New(w.plan, w.start), pending{}
			e.Reset()
			m.Begin(&e)
			for _, rec := range w.ledger[:read] {
				m.Apply(w.read(rec), w.now, &e)
			}
			e.Reset()
			m.Outstanding(w.now, &e)
			p.add(&e)
		}
	}
	return m
}

// timeOut records of one of the plans that run within the plan that it took too long.
func (w *nestWorld) timeOut(m *machine.Run) {
	for c := range m.All() {
		if m.PlanStep(c.Step).Plan == nil || m.Step(c, w.now).Status != outcome.StepRunning || w.Intn(3) > 0 {
			continue
		}
		token, err := m.Token(c), fault.New(fault.Timeout, "it took too long")
		name := fmt.Sprint("step ", token, 1)
		w.late[name] = true
		w.create(name, machine.Record{Result: &machine.Result{Token: &token, Attempt: 1, Error: err, ByOwner: true}})
		return
	}
}

// checkRoom makes sure that in no scope more calls are ready than its plan allows, those of the scopes below among them.
func (w *nestWorld) checkRoom(t testing.TB, m *machine.Run) {
	ready := map[int]int{}
	for c := range m.All() {
		st := m.Step(c, w.now).Status
		s := m.PlanStep(c.Step)
		if s.Plan != nil || c.Item == 0 && s.ForEach != nil || st != outcome.StepReady && st != outcome.StepRetrying {
			continue
		}
		for at := c; ; at = m.Composite(at.Step) {
			p, numbers := m.Scope(at.Step)
			first := numbers.First()
			if ready[first]++; p.Concurrency > 0 {
				require.LessOrEqual(t, ready[first], p.Concurrency, "%s", m.Token(c))
			}
			if m.Composite(at.Step).Step == machine.ThePlan {
				break
			}
		}
	}
}

// accountOf tells how all calls ended, by token.
func accountOf(m *machine.Run) map[string]string {
	all := map[string]string{}
	for c := range m.All() {
		st := m.Step(c, time.Time{})
		if all[st.ID] = string(st.Status); st.Error != nil {
			all[st.ID] += " " + string(st.Error.Code)
		}
	}
	return all
}

func (w *nestWorld) outcome(m *machine.Run) string {
	o := m.Outcome("r", func(step int) []byte { return w.value(m, step) })
	if x := m.Output(); x != nil && x.Handle != nil {
		o.Output = w.blobs[""]
	}
	return string(o.JSON())
}

// tellAll answers at once what is asked of lists and inputs that were read before; false where nothing was.
func (w *nestWorld) tellAll(m *machine.Run, e *machine.Effects) (some bool) {
	e.Reset()
	m.Outstanding(w.now, e)
	lists, inputs := slices.Clone(e.Expand), slices.Clone(e.Enter)
	for _, step := range lists {
		if _, known := w.lists[m.Token(machine.Call{Step: step})]; known && m.Expanding(step) {
			w.expand(m, step, e)
			some = true
		}
	}
	for _, c := range inputs {
		if name := fmt.Sprint("step ", m.Token(c), 1); m.Entering(c) && (w.late[name] || !w.created[name]) {
			w.enter(m, c, e)
			some = true
		}
	}
	return some
}

// again reads the records in any order into a machine, which must come to the same.
func (w *nestWorld) again(t testing.TB, m *machine.Run) {
	again := machine.New(w.plan, w.start)
	var e machine.Effects
	again.Begin(&e)
	records := slices.Clone(w.ledger)
	w.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for n := -1; n < len(records); n++ {
		if n >= 0 {
			again.Apply(w.read(records[n]), w.now, &e)
		}
		w.letGo(again, &e)
		for w.tellAll(again, &e) {
			w.letGo(again, &e)
		}
		e.Reset()
	}
	require.True(t, again.Finished(), "%v", accountOf(again))
	require.Equal(t, accountOf(m), accountOf(again))
	require.Equal(t, w.outcome(m), w.outcome(again))
}

// TestRandomScopesMatchTheTwin runs random plans with plans within them, under forgotten and reordered effects and with
// crashes, and compares with the twin.
func TestRandomScopesMatchTheTwin(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	counted := map[string]int{}
	for seed := range int64(n) {
		w := newNestWorld(t, rand.New(rand.NewSource(seed)), false)
		m := w.run(t)
		all, err := w.nested.Run(nestContracts)
		require.NoError(t, err)
		want, what := all[""], fmt.Sprintf("seed %d: %s", seed, w.nested.Plan)
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
		for _, res := range all {
			counted[res.Status]++
		}
		w.again(t, m)
	}
	for _, status := range []string{"succeeded", "partial", "failed"} {
		require.NotZero(t, counted[status], "%v", counted)
	}
}

// TestRandomScopesThatStop does the same for plans that stop with their first failure, runs that are cancelled and plans
// within them that take too long, which come to another end in another order: whoever reads the same records comes to the same, nothing is executed that was
// given up, and all of it ends.
func TestRandomScopesThatStop(t *testing.T) {
	t.Parallel()
	n := *worlds
	if testing.Short() {
		n = 500
	}
	cancels, timeouts := 0, 0
	for seed := range int64(n) {
		w := newNestWorld(t, rand.New(rand.NewSource(1<<40+seed)), true)
		if w.Intn(2) == 0 {
			w.stopAt = w.Intn(12)
		}
		w.hasty = w.Intn(2) == 0
		m := w.run(t)
		for c := range m.All() {
			require.True(t, m.Step(c, w.now).Status.Terminal(), "seed %d: %v", seed, accountOf(m))
		}
		if strings.Contains(w.outcome(m), `"cancelled"`) {
			cancels++
		}
		if strings.Contains(w.outcome(m), `"timeout"`) {
			timeouts++
		}
		w.again(t, m)
	}
	require.NotZero(t, cancels)
	require.NotZero(t, timeouts)
}
