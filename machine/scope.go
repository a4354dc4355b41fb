package machine

import (
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// scope is the steps of one plan within a run: those of the plan that was submitted are its root scope, and each
// composite that is entered has one below. Its plan numbers its steps from 0; in Run.calls, and in a Call, they stand
// from first on, in the same order.
type scope struct {
	*place
	plan   *plan.Plan
	first  int
	number int32 // among those of the run, 0 for the root

	// stopping is set by the record that lets nothing new start: a stop, or the failure under on_failure "stop".
	stopping  bool
	spares    instant      // until when what was due may end although it stops; 0 for nothing
	shaping   bool         // its steps are over, and a record is to tell what it comes to
	direct    bool         // of a round: that is the result of a direct call
	failFast  int          // the step, of the plan, whose failure stopped it, or -1
	failure   *fault.Error // what its composite fails with, however its steps end; nil where they tell
	remaining int          // steps that are not terminal
	reached   reached      // steps of which is to be decided what becomes of them
	output    *Result      // what it came to; nil while that is not known, and for a plan without an output
	room      *room        // nil where its plan bounds nothing
	waves     *waves       // nil unless the schedule is that
	amended   *amended     // nil for one that has the plan which it began with, and is not open
}

// place is where a scope stands in its run.
type place struct {
	of Call // the composite; its Step is ThePlan for the root
	// iteration counts those of a loop, from 1; 0 for a scope that is none. from is when what is in it may be sent.
	iteration int32
	from      instant
	round     int32 // counts those of an agent, from 1; 0 for a scope that is of none
	outer     *scope
	depth     int    // how many composites are above
	token     string // of the composite
	input     input
	asksFor   *guarding // of the call of a guard: what that is asked about; nil for any other scope
	heldBy    *guarding // of a round: what its agent waits for before it goes on; nil for nothing
}

// atRoot is the place of the root scope. It is shared by all runs.
var atRoot = place{of: Call{Step: ThePlan}, token: subjects.RootScope}

// begin brings a scope to where none of its steps is looked at yet.
func (sc *scope) begin(r *Run) {
	sc.plan, sc.amended, sc.failure = sc.base(), nil, nil
	steps := sc.plan.Steps
	sc.remaining, sc.stopping, sc.spares, sc.failFast, sc.reached = len(steps), false, 0, -1, reached{}
	sc.room, sc.shaping, sc.direct, sc.output, sc.waves = newRoom(r, sc), false, false, nil, nil
	if sc.plan.Schedule == plan.Waves {
		sc.waves = newWaves(sc.plan)
	}
	if sc.outer != nil {
		sc.from, sc.heldBy = sc.outer.from, nil
	}
	for i := range steps {
		s := &r.calls[sc.first+i]
		*s = call{
			Call: Call{Step: sc.first + i}, state: waiting, scope: sc.number, below: s.below, missing: int32(len(steps[i].Deps)),
		}
	}
}

// open makes the steps of a scope ready that wait for no other.
func (sc *scope) open(r *Run, at time.Time, out *Effects) {
	sc.keepOpen(r, at)
	if sc.waves != nil {
		sc.openWave(r, at, out)
		return
	}
	for i := range sc.plan.Steps {
		if s := &r.calls[sc.at(i)]; s.missing == 0 && s.state == waiting {
			sc.reach(r, i)
		}
	}
	sc.takeReached(r, at, out)
}

// scopes are those below the root that were ever entered in this process, what is known of their inputs, and what is
// lent to one after the other. A scope keeps its place when the state is computed anew, since Calls name steps by it; in
// another order of the records it may be entered at another time, or never.
type scopes struct {
	below    []*scope
	elements map[int][][]byte // of for_each steps that are composites: the list
	readable map[Call]bool    // composites whose input lies in blobs and can be read
	lost     map[Call]bool    // composites whose list or input can't be read any more
	loops    []*loop          // by the number that their calls have of them
	agents   []*rounds        // likewise
	sight    *sight           // nil before it is needed
	spare    []int            // for reached steps
}

// stepsWithin returns how many steps the plans of composites have which run once.
func stepsWithin(p *plan.Plan) (n int) {
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Plan != nil && s.ForEach == nil {
			n += len(s.Plan.Steps) + stepsWithin(s.Plan)
		}
	}
	return n
}

// standing returns how the steps of a scope stand now. It is good until the next call is added.
func (sc *scope) standing(r *Run) standing {
	return standing{sc, r.calls}
}

// numbers returns those of the steps of a scope.
func (sc *scope) numbers() Numbers {
	if a := sc.amended; a != nil {
		return Numbers{sc.first, len(a.base.Steps), a.later}
	}
	return Numbers{first: sc.first, own: len(sc.plan.Steps)}
}

// at returns where the call of a step stands, which is numbered as the plan does.
func (sc *scope) at(step int) int {
	if sc.amended != nil {
		return sc.numbers().Of(step)
	}
	return sc.first + step
}

// numberOf returns how the plan numbers a step.
func (sc *scope) numberOf(step int) int {
	if sc.amended != nil {
		return sc.numbers().Step(step)
	}
	return step - sc.first
}

// amended is what amendments made of a scope.
type amended struct {
	base      *plan.Plan
	later     []int       // where the calls of the steps stand that base doesn't have
	contracts map[int]int // of the steps that it doesn't have so: where they stand among those of the run
	revision  int         // of the last
	closed    bool        // the scope is over with its steps
	changing  bool        // a record is being applied
	waiting   *Amendment  // the last, where a person is asked about it
	direct    []string    // of a round: as Round.Direct and Round.Earlier, of what was added
	earlier   []Earlier
	missed    []int     // of a round: the calls of its answer that were discarded before they were over
	until     time.Time // of an open scope: when it is to be closed
	expiring  bool      // that time is over, and a record was asked for
}

// base returns the plan that a scope began with.
func (sc *scope) base() *plan.Plan {
	if sc.amended != nil {
		return sc.amended.base
	}
	return sc.plan
}

// amend returns what amendments made of a scope, of which there may be none yet.
func (sc *scope) amend() *amended {
	if sc.amended == nil {
		sc.amended = &amended{base: sc.plan}
	}
	return sc.amended
}

// added returns what amendments made of a scope, to be looked at.
func (sc *scope) added() *amended {
	if sc.amended == nil {
		return &amended{}
	}
	return sc.amended
}

// contractOf returns where among those of the run the contract of a step stands, which is numbered as the run does.
func (sc *scope) contractOf(number int) int {
	step := sc.numberOf(number)
	if sc.amended == nil {
		return sc.plan.Offset + step
	}
	if at, is := sc.amended.contracts[step]; is {
		return at
	}
	return sc.amended.base.Offset + step
}

// over reports whether nothing comes any more in a scope: its steps are, and no amendment may add others.
func (sc *scope) over() bool {
	switch a := sc.amended; {
	case sc.remaining > 0 || a != nil && a.changing || sc.heldBy != nil:
		return false
	case !sc.plan.Open || sc.stopping:
		return true
	default:
		return a != nil && a.closed
	}
}

// revision returns that of the last amendment of a scope; 0 where there is none.
func (sc *scope) revision() int {
	if sc.amended == nil {
		return 0
	}
	return sc.amended.revision
}

// keepOpen lets an open scope wait for amendments from now on.
func (sc *scope) keepOpen(r *Run, at time.Time) {
	if !sc.plan.Open || sc.plan.OpenFor == 0 || sc.amended != nil && sc.amended.closed { // without an end: its planner closes it
		return
	}
	a := sc.amend()
	a.until, a.expiring = at.Add(sc.plan.OpenFor), false
	r.deadlines.add(deadline{at: a.until, call: int(sc.number), attempt: toBeClosed})
}

// expire asks for the record that closes a scope, if nothing has changed it since the deadline was set.
func (sc *scope) expire(r *Run, d *deadline, out *Effects) {
	if a := sc.amended; a != nil && a.until.Equal(d.at) {
		a.expiring = true
		sc.askClose(r, out)
	}
}

// askClose asks for the record that closes a scope whose time is over: once a revision, and only one that would be in force
// here, so that what would be refused is never asked for again and again.
func (sc *scope) askClose(r *Run, out *Effects) {
	a := sc.amended
	if a == nil || !a.expiring || a.closed || sc.stopping {
		return
	}
	c, would := sc.closing(r)
	if !would {
		return
	}
	out.Close = append(slices.DeleteFunc(out.Close, func(before Closing) bool { return before.Scope == sc.token }), c)
}

// closing is the record that would close an open scope; would is false where that would do nothing.
func (sc *scope) closing(r *Run) (c Closing, would bool) {
	c = Closing{Scope: sc.token, Revision: sc.revision() + 1}
	x := &amending{r, sc, &Amendment{Scope: sc.token, Revision: c.Revision, Close: true, Approved: true}}
	c.Fixed = x.fixed() != nil
	x.a.ByOwner = c.Fixed
	return c, scopeNamed(&r.tree, sc.token) == sc && x.unapproved() == nil && x.unamendable() == nil
}

// goesOn reports whether there may be something in a scope that goes on: it does not stop, or spares what is out.
func (sc *scope) goesOn() bool { return !sc.stopping || sc.spares != 0 }

// stop lets nothing new start in a scope, and gives up what is out but for what was due by then where something is to be
// spared.
func (sc *scope) stop(r *Run, spares instant, at time.Time, out *Effects) {
	sc.stopping, sc.spares = true, spares
	sc.halt(r, at, out)
}
