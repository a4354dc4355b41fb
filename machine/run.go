// Package machine is a run as a state machine: records in, effects out.
//
// It is pure: no I/O, no clock, no goroutine; time is an argument. The state of a run is a function of its plan, its
// start and the set of its records in the order of their ledger sequences, so two owners that read the same ledger
// reach the same state, and an owner that restarts rebuilds it. The length of a for_each step's list is told from
// outside (Expand), but it is itself a function of the plan and the records, so nothing changes in that.
//
// Safety. An attempt is decided by one record, because the ledger takes one record a subject. Attempt A+1 is asked for
// only after A was decided a retryable failure, so a step has at most one success. A step is dispatched only once all
// its dependencies are terminal and the non-optional ones have succeeded. As long as a list isn't counted whose records
// are there already, nothing is asked for in a plan that stops with its first failure: it may have stopped.
//
// Liveness. Outstanding lists at any time what should be out; whoever compares it with what is out repairs what was
// lost.
//
// Records that come twice are ignored. Records that come out of their order are put into it: the state is computed anew
// from the sorted records (it happens in simulations; a ledger cursor has one order).
package machine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// Start is what was frozen when the run began, and everybody follows.
type Start struct {
	// Key is the run's identity T/R/G; jitter is a hash of it, the step and the attempt.
	Key string
	// Submitted is the time of the plan record, from which the run's timeout counts.
	Submitted time.Time
	// Started is the time of the start record: steps without dependencies are ready then.
	Started time.Time
	// Contracts are those of the tools used, by name. Nobody changes them any more.
	Contracts map[string]*tool.Contract
	// Trial says that results are made up: a loop whose until is never true with them is over all the same once it ran as
	// often as it may.
	Trial bool
	// EachGuard says that of several guards which ask a person about a call each does, of what it would be called with by then:
	// in runs of before only the first did.
	EachGuard bool
	// AgentEnds says that the errors of agents that have used up their budgets, or that the run has no room for, tell what came
	// of their rounds: in runs of before they did not.
	AgentEnds bool
	// Reused are the results of steps that are not executed, because the run that this one tries again has them.
	Reused map[int]*Result
	// ReusedWithin are those of the steps of composites, by token. Within an item they count only where its list is the
	// one of that run (TakeOver).
	ReusedWithin map[string]*Result
}

type state uint8

const (
	absent    state = iota // its scope is not entered
	waiting                // for dependencies, or for its wave
	held                   // for room in its scope
	judging                // its condition is to be read from blobs
	deriving               // its value is to be built beside this, and recorded
	weighing               // whether its tool's contract asks for an approval is to be recorded
	asking                 // for a person's answer
	expanding              // a for_each step whose list has not been counted yet
	spread                 // a for_each step whose items are out
	entered                // a composite whose steps are under way
	closing                // a composite whose steps are over: what follows from that is to be read, and recorded
	guarded                // a call, or its result, which waits for a guard of its agent that is a tool
	fitting                // a call that succeeded: whether its result fits the state is to be found out, and recorded
	ready                  // dispatched, or about to be
	retrying               // its next attempt waits for its time
	succeeded              // the rest are terminal
	failed
	skipped
	cancelled
	notTaken // its condition was false, or there is nothing that it could be handed
)

func (s state) terminal() bool { return s >= succeeded }

// asks reports whether a person is to answer first, or it is to be found out whether one is.
func (s state) asks() bool { return s == asking || s == weighing }

// between reports whether the last attempt of a call that had one is decided, and the next is not out yet.
func (s state) between() bool { return s == asking || s == held || s == guarded }

// out reports whether an attempt is to be decided by a record.
func (s state) out() bool { return s == ready || s == retrying }

// call is the state of one step, or of one item of a for_each step.
type call struct {
	Call
	state     state
	discarded discard
	expiring  bool   // its deadline passed and a record was asked for
	reused    bool   // taken over from an earlier run
	missing   int32  // dependencies that are not terminal
	attempt   int32  // the attempt that is out, or the one that decided
	executed  int32  // attempts that a worker decided
	scope     int32  // the number of the one that it stands in
	below     int32  // of a composite the number of its own scope, of a loop its own, of a list one more than where its items begin; 0 before
	since     uint64 // the record that made it ready
	ready     instant
	deadline  instant
	at        instant // when the attempt that is out is due, where that is later than it was asked for; 0 else
	decided   instant
	result    *Result // of the last attempt decided
	*items            // of a for_each step that is spread
}

// Run is the state of one run. It is not safe for concurrent use.
type Run struct {
	start Start
	tree
	questions
	amendments

	steps     int32 // of all scopes that are entered
	uncounted int32 // for_each steps whose list is not counted yet
	anew      int32 // how often the state was computed anew
	ordered   int32 // how often something happened of which the order counts: a scope stopped, or a bound was met
	stops     bool  // a failure may stop some scope, or one was amended
	begun     bool
	finished  bool
	expiring  bool

	deadline time.Time
	stop     *Stop

	deadlines deadlines
	rooms     *room // above those of all scopes; nil for none

	withheld *Effects // while it is uncertain whether the run has stopped

	log      []Record // in the order of their sequences
	early    map[attemptKey]*Record
	counts   map[int]int             // of for_each steps: the length of the list, once it was told
	taken    map[int]map[int]*Result // of for_each steps: the results of items that are taken over, by item from 1
	entries  map[int][]byte          // of for_each steps: what references see of them, once somebody asked
	values   values
	kept     kept
	seq      uint64 // of the record being applied
	lastTime time.Time
	now      time.Time // of who reads, which decides only what is due already
}

type attemptKey struct {
	Call
	attempt int
}

// New returns the run before its first step. The caller owns p and must not change it.
func New(p *plan.Plan, start Start) *Run {
	r := &Run{start: start, tree: tree{root: scope{plan: p, place: &atRoot}}, stops: mayStop(p)}
	r.contracts = appendContracts(make([]*tool.Contract, 0, len(p.Steps)), p, start.Contracts)
	r.submitted = len(r.contracts)
	r.start.Contracts = nil // each step's is at hand
	r.reset()
	return r
}

// mayStop reports whether a failure may stop a scope of a plan: on_failure says so, or it is that of an item beside
// others.
func mayStop(p *plan.Plan) bool {
	return p.OnFailure == plan.Stop || slices.ContainsFunc(p.Steps, func(s plan.Step) bool {
		return s.Plan != nil && (s.ForEach != nil || mayStop(s.Plan))
	})
}

// appendContracts appends the contract of each step's tool, and those of the plans within.
func appendContracts(of []*tool.Contract, p *plan.Plan, byTool map[string]*tool.Contract) []*tool.Contract {
	for i := range p.Steps {
		of = append(of, contractFor(&p.Steps[i], byTool))
	}
	if p.Guards != nil {
		of = appendContracts(of, p.Guards, byTool)
	}
	for i := range p.Steps {
		if inner := p.Steps[i].Plan; inner != nil {
			of = appendContracts(of, inner, byTool)
		}
	}
	return of
}

func contractFor(s *plan.Step, byTool map[string]*tool.Contract) *tool.Contract {
	if s.Ask {
		return &tool.Contract{MaxAttempts: 1, ErrorPropagation: tool.FailFast}
	}
	if c := byTool[s.Tool]; c != nil {
		return c
	}
	return &tool.Contract{}
}

// View returns the run for a reader on another goroutine, while no record is applied to it: what is put together for
// the one (Value) is not put into the other.
func (r *Run) View() *Run {
	v := *r
	v.entries = maps.Clone(r.entries)
	if r.scopes != nil {
		s := *r.scopes
		v.scopes, s.sight = &s, nil
	}
	return &v
}

func (r *Run) reset() {
	r.amendments.undo(r)
	p := r.root.base()
	if r.calls == nil {
		r.calls = make([]call, len(p.Steps), len(p.Steps)+stepsWithin(p))
	}
	for i := range r.calls { // what is behind the steps keeps its place
		r.calls[i] = call{Call: Call{Item: r.calls[i].Item}, below: r.calls[i].below}
	}
	r.steps = int32(len(p.Steps))
	r.deadline, r.stop, r.expiring, r.uncounted = r.start.Submitted.Add(p.Timeout), nil, false, 0
	r.deadlines, r.early, r.entries, r.rooms, r.seq, r.values = nil, nil, nil, nil, 0, values{effort: atOnce.run}
	r.questions, r.withheld = questions{}, nil
	r.kept.derived, r.kept.underived = 0, 0
	r.lastTime, r.begun, r.finished = r.start.Started, false, false
	r.scopes.reset()
	r.contracts = r.contracts[:r.submitted]
	r.root.begin(r)
}

// Begin makes the steps without dependencies ready. It is called once, before the first Apply.
func (r *Run) Begin(out *Effects) {
	if r.begun {
		return
	}
	r.begun = true
	r.reuse()
	if r.root.plan.Approval != nil && r.root.remaining > 0 {
		r.askForPlan(out)
	} else {
		r.root.open(r, r.start.Started, out)
		r.admit(r.start.Started, out)
	}
	r.finishIfOver(out)
	r.withhold(out)
}

// fewRecords is how many there is room for at first.
const fewRecords = 2

func (r *Run) finishIfOver(out *Effects) {
	if !r.root.over() || r.finished {
		return
	}
	dropProposal(&r.root)
	if r.shaped(out) {
		r.finished, out.Finished = true, true
	}
}

// Apply reads one record, which belongs to the machine from then on. now decides only whether a retry is already due;
// the state depends on the records alone.
func (r *Run) Apply(rec Record, now time.Time, out *Effects) {
	r.Begin(out)
	at, known := slices.BinarySearchFunc(r.log, rec.Seq, func(l Record, seq uint64) int { return cmp.Compare(l.Seq, seq) })
	if known {
		return
	}
	rec.normalise()
	r.now = now
	r.stops = r.stops || rec.Amendment != nil || rec.Round != nil || rec.Say != nil // from now on the order counts
	inOrder, uncertain := at == len(r.log), r.uncertain()
	if len(r.log) == cap(r.log) { // as a long run has many records, it is not to copy them again and again
		r.log = slices.Grow(r.log, max(len(r.log), fewRecords))
	}
	r.log = slices.Insert(r.log, at, rec)
	if rec.Result != nil {
		r.kept.bytes += int64(len(rec.Result.Value))
	}
	if r.kept.missing { // it is applied once all is there
		return
	}
	defer func() { r.scopes.lookAway() }() // which there may be none of yet
	if inOrder {
		r.apply(&r.log[at], out)
	}
	if !inOrder || uncertain && !r.uncertain() { // what was withheld is to be asked for
		r.replay(now, out)
	}
	r.withhold(out)
}

// replay computes the state anew from all records in their order, then asks for all that should be out. Where values were
// let go of, that waits for them.
func (r *Run) replay(now time.Time, out *Effects) {
	if r.kept.gone > 0 {
		r.kept.missing, r.finished = true, r.finished && !out.Finished
		out.Reset()
		return
	}
	wasFinished := r.finished && !out.Finished
	r.anew++
	r.reset()
	var scratch Effects
	r.Begin(&scratch)
	for i := range r.log {
		r.apply(&r.log[i], &scratch)
	}
	out.Reset()
	out.Settled = append(out.Settled, scratch.Settled...)
	out.Finished = r.finished && !wasFinished
	r.Outstanding(now, out)
}

func (r *Run) apply(rec *Record, out *Effects) {
	if r.finished {
		return // a stop after the last deciding record, or a record of a step that was derived
	}
	r.seq = rec.Seq
	if rec.Time.After(r.lastTime) {
		r.lastTime = rec.Time
	}
	switch {
	case rec.Stop != nil:
		r.applyStop(rec, out)
	case rec.Result != nil:
		r.applyResult(rec, out)
	case rec.Told != nil:
		r.applyTold(rec, out)
	case rec.Answer != nil:
		r.applyAnswer(rec, out)
	case rec.Amendment != nil:
		r.amendments.take(r, rec, out)
	case rec.Round != nil:
		takeRound(r, rec, out)
	case rec.Claim != nil:
		takeClaim(r, rec.Claim)
	case rec.Say != nil:
		takeSay(r, rec.Say, rec.Time, out)
	}
	r.admit(rec.Time, out)
	r.finishIfOver(out)
}

// normalise turns a tool's output into the JSON value it stands for. A pure function of the record, so all owners agree
// that a success with unreadable output is a failure.
func (rec *Record) normalise() {
	res := rec.Result
	if rec.Told != nil {
		res = rec.Told.Output
	}
	if res == nil || res.Error != nil || res.Value != nil || res.Asks != nil {
		return
	}
	if res.Handle != nil && res.Handle.Checked && res.Body == nil {
		res.Size = res.Handle.Size
		return
	}
	value, err := plan.Output(res.Body, res.Text)
	res.Body = nil
	if err != nil {
		res.Error = err
		return
	}
	res.Size = int64(len(value))
	if res.Handle == nil {
		res.Value = value
	}
}

// makeReady lets a call begin whose inputs are there, as soon as the person agrees who is asked first.
func (r *Run) makeReady(i int, at time.Time, out *Effects) {
	switch {
	case asksEachGuard(r, i):
		weigh(r, i, out)
	case r.asks(i):
		r.ask(i, at, out)
	case r.weighs(i) || asksGuards(r, i):
		weigh(r, i, out)
	default:
		r.begins(i, at, out)
	}
}

// begins lets a call begin that nobody has to be asked about any more; where its plan, or one above it, bounds how many
// may be ready at once, as soon as there is room. A question holds no room, since a person may take days: else n
// questions would keep all other calls of the plan from beginning, and one that is approved takes its turn in the order
// of the plan.
func (r *Run) begins(i int, at time.Time, out *Effects) {
	if passesCall(r, i, at, out) {
		admitted(r, i, at, out)
	}
}

// admitted is begins for a call that all guards have let pass which are asked before.
func admitted(r *Run, i int, at time.Time, out *Effects) {
	if x := r.scopeOf(i).bounded(); x != nil && r.isForWorker(i) {
		x.hold(i)
		return
	}
	r.launch(i, at, out)
}

// launch asks for the first attempt of a call that there is room for, or for the length of its list, or lets one go on
// whose worker was answered. Deadlines count from the first.
func (r *Run) launch(i int, at time.Time, out *Effects) {
	s, due := &r.calls[i], at
	if s.attempt > 0 { // its worker asked a person, and was answered
		goOn(r, i, at, out)
		return
	}
	s.state, s.attempt, s.ready, s.since = ready, 1, instantOf(at), r.seq
	if from := r.scopeOf(i).from; from > s.ready {
		s.at, due = from, from.time()
	}
	if t := r.stepOf(i).Timeout; t > 0 && (s.Item > 0) == timesEach(r, i) {
		by := due.Add(t)
		s.deadline = instantOf(by)
		r.deadlines.add(deadline{at: by, call: i})
	}
	if s.Item == 0 && r.stepOf(i).ForEach != nil {
		r.expandLater(i, at, out)
		return
	}
	if r.stepOf(i).Plan != nil {
		r.enter(i, at, out)
		return
	}
	r.send(i, due, out)
}

// send asks for the attempt of a call that is due now or later, unless its record is there already.
func (r *Run) send(i int, due time.Time, out *Effects) {
	s := &r.calls[i]
	if rec := r.waited(s.Call, int(s.attempt)); rec != nil {
		r.decide(i, rec, out)
		return
	}
	if w := r.Contract(s.Step).WaitTimeout; w > 0 {
		r.deadlines.add(deadline{at: due.Add(w), call: i, attempt: int(s.attempt)})
	}
	if s.expiring { // its deadline passed while the record of the last attempt was on its way
		r.askDecision(i, out)
		return
	}
	d := Dispatch{Call: s.Call, Attempt: int(s.attempt)}
	if s.at != 0 && due.After(r.now) {
		d.At = due
	}
	out.Dispatch = append(out.Dispatch, d)
}
