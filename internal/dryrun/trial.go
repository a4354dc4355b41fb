package dryrun

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Bounds of one dry run.
const (
	maxItems  = 200_000   // of all lists
	maxWork   = 256 << 20 // bytes of arguments and lists that are built, and a sixteenth of those gone through for them
	maxKept   = 256 << 20 // bytes of lists that are kept for other steps to refer to
	maxChecks = 16 << 20  // steps of checking arguments, as for a whole plan when it is parsed
	maxDoubts = 100
	maxShown  = 64 << 10 // bytes of arguments that are shown
)

// began is the one time of a dry run: nothing takes any.
var began = time.Unix(0, 0).UTC()

// trial is a run whose calls are answered with made-up results.
type trial struct {
	plan    *plan.Plan
	catalog *catalog
	machine *machine.Run
	scopes  map[int]*scope // by the number of their first step
	effects machine.Effects
	seq     uint64 // of the last record

	steps []*stepOf      // by their number in the run; nil for one that nothing was learnt of yet
	items int            // of all lists
	ready map[*known]int // calls of each tool in the round in hand

	work, kept, checks int // left
	cut                string

	sure    bool // what was referred to since it was set is certain
	asked   int  // how often it was referred to a result since then
	doubts  []fault.Problem
	leftOut int
}

// stepOf is what a dry run learns of one step.
type stepOf struct {
	tool    *known // nil for a value and a composite
	calls   int
	asked   int      // how often a person is asked
	list    [][]byte // of a for_each step
	sure    bool     // its list is certain
	guessed bool     // its list was made up
	entries []byte   // of a for_each step: what others see
	judged  bool     // sure is known, of a value or a composite
	shown   []byte   // the arguments of its first call
	size    int      // of them
}

func newTrial(p *plan.Plan, c *catalog) *trial {
	t := &trial{plan: p, catalog: c, scopes: map[int]*scope{}, work: maxWork, kept: maxKept, checks: maxChecks}
	contracts := make(map[string]*tool.Contract, len(c.known))
	for name, k := range c.known {
		contracts[name] = &k.Contract
	}
	for s := range p.All() {
		if x := s.Template; x != nil { // what is made up proves nothing; the steps within are doubted one by one
			x.Input, x.Output = nil, nil
		}
	}
	t.machine = machine.New(p, machine.Start{Key: "dry-run", Submitted: began, Started: began, Contracts: contracts, Trial: true})
	return t
}

// at returns what was learnt of a step.
func (t *trial) at(step int) *stepOf {
	if n := step + 1 - len(t.steps); n > 0 {
		t.steps = append(t.steps, make([]*stepOf, n)...)
	}
	if t.steps[step] == nil {
		s := t.machine.PlanStep(step)
		t.steps[step] = &stepOf{sure: true}
		switch {
		case s.Ask:
			t.steps[step].tool = askTool()
		case s.Plan == nil:
			t.steps[step].tool = t.catalog.known[s.Tool]
		}
	}
	return t.steps[step]
}

// run goes on in rounds until all steps are over: what is ready is answered, all of it, then what became ready by that.
// Each round has a record, so there is an end.
func (t *trial) run() {
	t.machine.Begin(&t.effects)
	t.expand()
	for t.cut == "" && !t.machine.Finished() {
		round, before := t.effects, t.seq
		t.effects = machine.Effects{}
		t.ready = map[*known]int{}
		for i := 0; i < len(round.Dispatch) && t.cut == ""; i++ {
			if d := &round.Dispatch[i]; t.machine.Wanted(d.Call, d.Attempt) {
				t.record(t.answer(d.Call, d.Attempt))
			}
		}
		t.people(&round)
		for _, d := range round.Decide {
			if t.machine.Open(d.Call, d.Attempt) {
				t.record(&machine.Result{Call: d.Call, Attempt: d.Attempt, Error: d.Error, ByOwner: true})
			}
		}
		t.evaluate(&round)
		if t.seq == before {
			closePlans(t)
		}
		if t.seq == before { // what a dry run can't answer: it must not wait for ever
			t.stop("it waits for something else than a tool")
		}
	}
}

// closePlans closes those that wait for amendments, of which a dry run has none.
func closePlans(t *trial) {
	for _, c := range machine.Closings(t.machine) {
		t.tell(machine.Record{Amendment: &machine.Amendment{Scope: c.Scope, Revision: c.Revision, Close: true, Approved: true, ByOwner: c.Fixed}})
	}
}

// record hands the record that decides an attempt to the machine, and reads the lists that it asks for at once: later,
// the machine would have to begin anew.
func (t *trial) record(r *machine.Result) {
	t.apply(r)
	t.expand()
}

func (t *trial) apply(r *machine.Result) {
	t.seq++
	t.machine.Apply(machine.Record{Seq: t.seq, Time: began, Result: r}, began, &t.effects)
}

// expand reads the lists that the machine asks for, and tells it how long they are. So it does with the values that take
// longer than the machine allows itself, and with inputs that are larger.
func (t *trial) expand() {
	for t.cut == "" {
		switch e := &t.effects; {
		case len(e.Expand) > 0:
			step := e.Expand[0]
			e.Expand = e.Expand[1:]
			t.count(step)
		case len(e.Enter) > 0:
			c := e.Enter[0]
			e.Enter = e.Enter[1:]
			t.enter(c)
		case len(e.Derive) > 0:
			d := e.Derive[0]
			e.Derive = e.Derive[1:]
			t.derive(d.Step, d.Room)
		default:
			return
		}
	}
}

// count reads one list.
func (t *trial) count(step int) {
	if !t.machine.Expanding(step) {
		return
	}
	if err := t.list(step); err != nil {
		t.apply(&machine.Result{Call: machine.Call{Step: step}, Attempt: 1, ByOwner: true, Error: err})
		return
	}
	list := t.at(step).list
	if t.items += len(list); t.items > maxItems {
		t.stop("there are more than %d items of lists", maxItems)
		return
	}
	if t.machine.PlanStep(step).Plan != nil {
		t.machine.Elements(step, list)
	}
	t.machine.Expand(step, len(list), began, &t.effects)
}

// derive builds a value.
func (t *trial) derive(step int, room int64) {
	if t.machine.Asks(step) != machine.AskedValue {
		return
	}
	effort := plan.Effort{Bytes: int64(t.work), Work: t.work}
	sc := t.scopeOf(step)
	value, err := sc.resolver.Derive(step-sc.first, room, &effort, sc.result)
	if effort.Spent() {
		t.stop("its values take too long to derive")
		return
	}
	t.spend(t.work - int(effort.Bytes))
	t.seq++
	told := &machine.Told{Call: machine.Call{Step: step}, Value: &machine.Result{Value: value, Size: int64(len(value)), Error: err}}
	t.machine.Apply(machine.Record{Seq: t.seq, Time: began, Told: told}, began, &t.effects)
}

// list reads the list of a for_each step. The error is one that is certain.
func (t *trial) list(step int) *fault.Error {
	x, sc := t.at(step), t.scopeOf(step)
	t.sure, t.asked = true, 0
	list, err := sc.resolver.Items(step-sc.first, sc.result)
	x.list, x.guessed, x.sure = list, t.asked > 0, t.sure
	if err == nil || t.sure {
		return err
	}
	t.doubtOf(machine.Call{Step: step}, "/for_each/in", err)
	x.list = [][]byte{[]byte("null")} // one item stands for those that nobody knows
	return nil
}

// answer makes one call, which is answered with what its tool returns in a dry run, or fails before it gets there.
func (t *trial) answer(c machine.Call, attempt int) *machine.Result {
	x := t.at(c.Step)
	args, err := t.arguments(c)
	if err != nil {
		return &machine.Result{Call: c, Attempt: attempt, ByOwner: true, Error: err}
	}
	x.tool.calls++
	t.ready[x.tool]++
	x.tool.atOnce = max(x.tool.atOnce, t.ready[x.tool])
	if x.calls++; x.calls == 1 {
		x.size = len(args)
		if x.size <= maxShown {
			x.shown = args
		}
	}
	value := x.tool.returns()
	if held := t.machine.PlanStep(c.Step).Held; held != nil {
		err := held.Check(value, &t.checks)
		switch {
		case err != nil && x.tool.from == outcome.FromExample:
			return &machine.Result{Call: c, Attempt: attempt, Error: err}
		case err != nil && x.tool.from == outcome.FromSchema:
			t.doubtOf(c, "", err)
		}
	}
	return &machine.Result{Call: c, Attempt: attempt, Value: value, Size: int64(len(value))}
}

// stop ends the run before its end.
func (t *trial) stop(format string, args ...any) {
	if t.cut == "" {
		t.cut = fault.New(fault.LimitExceeded, format, args...).Message
	}
}
