package machine

import (
	"slices"

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
	shaping   bool    // its steps are over, and a record is to tell what it comes to
	failFast  int     // the step, of the plan, whose failure stopped it, or -1
	remaining int     // steps that are not terminal
	reached   reached // steps of which is to be decided what becomes of them
	output    *Result // what it came to; nil while that is not known, and for a plan without an output
	room      *room   // nil where its plan bounds nothing
	waves     *waves  // nil unless the schedule is that
}

// place is where a scope stands in its run.
type place struct {
	of      Call // the composite; its Step is ThePlan for the root
	outer   *scope
	depth   int    // how many composites are above
	token   string // of the composite
	input   input
	failure *fault.Error // what the composite fails with, however its steps end
}

// atRoot is the place of the root scope. It is shared by all runs.
var atRoot = place{of: Call{Step: ThePlan}, token: subjects.RootScope}

// begin brings a scope to where none of its steps is looked at yet.
func (sc *scope) begin(r *Run) {
	steps := sc.plan.Steps
	sc.remaining, sc.stopping, sc.failFast, sc.reached = len(steps), false, -1, reached{}
	sc.room, sc.shaping, sc.output, sc.waves = newRoom(r, sc), false, nil, nil
	if sc.plan.Schedule == plan.Waves {
		sc.waves = newWaves(sc.plan)
	}
	for i := range steps {
		s := &r.calls[sc.first+i]
		*s = call{
			Call: Call{Step: sc.first + i}, state: waiting, scope: sc.number, below: s.below, missing: int32(len(steps[i].Deps)),
		}
	}
}

// scopes are those below the root that were ever entered in this process, what is known of their inputs, and what is
// lent to one after the other. A scope keeps its place when the state is computed anew, since Calls name steps by it; in
// another order of the records it may be entered at another time, or never.
type scopes struct {
	below    []*scope
	elements map[int][][]byte // of for_each steps that are composites: the list
	readable map[Call]bool    // composites whose input lies in blobs and can be read
	sight    *sight           // nil before it is needed
	spare    []int            // for reached steps
}

// scopeOf returns the scope that a call stands in.
func (r *Run) scopeOf(i int) *scope {
	if n := r.calls[i].scope; n > 0 {
		return r.scopes.below[n-1]
	}
	return &r.root
}

// inside returns the scope that a composite was entered with, nil for any other call.
func (r *Run) inside(c Call) *scope {
	i, ok := r.index(c)
	if !ok {
		return nil
	}
	return r.insideOf(i)
}

// insideOf is inside for a call that there is.
func (r *Run) insideOf(i int) *scope {
	n := r.calls[i].below
	if n == 0 || !r.isComposite(i) {
		return nil
	}
	sc := r.scopes.below[n-1]
	if r.calls[sc.first].state == absent {
		return nil
	}
	return sc
}

// nested returns the scopes below the root, of which there may be none.
func (r *Run) nested() *scopes {
	if r.scopes == nil {
		r.scopes = &scopes{}
	}
	return r.scopes
}

// placeFor returns the scope of a composite, which has a place among the calls from then on.
func (r *Run) placeFor(i int) *scope {
	c := &r.calls[i]
	if c.below > 0 {
		return r.scopes.below[c.below-1]
	}
	p, outer := r.stepOf(i).Plan, r.scopeOf(i)
	c.below = int32(len(r.nested().below) + 1)
	x := &struct {
		scope
		at place
	}{
		scope{plan: p, first: len(r.calls), number: c.below},
		place{of: c.Call, outer: outer, depth: outer.depth + 1, token: r.Token(c.Call)},
	}
	sc := &x.scope
	sc.place = &x.at
	r.scopes.below = append(r.scopes.below, sc)
	r.calls = slices.Grow(r.calls, len(p.Steps))[:sc.first+len(p.Steps)]
	return sc
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

// stepOf returns the plan's step that a call belongs to.
func (r *Run) stepOf(i int) *plan.Step {
	sc := r.scopeOf(i)
	return &sc.plan.Steps[r.calls[i].Step-sc.first]
}

// isComposite reports whether a call is entered instead of sent to a worker. The for_each step of such is not: its items
// are.
func (r *Run) isComposite(i int) bool {
	s := r.stepOf(i)
	return s.Plan != nil && (s.ForEach == nil || r.calls[i].Item > 0)
}

// standing returns how the steps of a scope stand now. It is good until the next call is added.
func (sc *scope) standing(r *Run) standing {
	return standing{sc.plan, r.calls[sc.first : sc.first+len(sc.plan.Steps)], r.calls}
}

// isStep reports whether there is a step of such a number by now.
func (r *Run) isStep(step int) bool {
	return step >= 0 && step < len(r.calls) && r.calls[step].Item == 0 && r.calls[step].state != absent
}

// Find returns the call that a token names, and whether there is such a call by now.
func (r *Run) Find(token string) (Call, bool) {
	segments, ok := subjects.ParseStepToken(token)
	sc, c := &r.root, Call{}
	for i := 0; i < len(segments) && ok; i++ {
		if i > 0 {
			if sc = r.inside(c); sc == nil {
				return Call{}, false
			}
		}
		x := &segments[i]
		step, known := sc.plan.Index(x.Name)
		c, ok = Call{Step: sc.first + step}, known && (x.Kind == subjects.StepSegment || x.Kind == subjects.ItemSegment)
		if x.Kind == subjects.ItemSegment {
			c.Item = x.Number + 1
		}
	}
	if !ok || len(segments) == 0 {
		return Call{}, false
	}
	return c, true
}

// Inside returns the numbers of the steps of the scope that a composite was entered with: n from first on. ok is false
// for any other call.
func (r *Run) Inside(c Call) (first, n int, ok bool) {
	sc := r.inside(c)
	if sc == nil {
		return 0, 0, false
	}
	return sc.first, len(sc.plan.Steps), true
}

// Composite returns the composite whose scope a step stands in; its Step is ThePlan for a step of the plan that was
// submitted.
func (r *Run) Composite(step int) Call {
	sc := r.scopeOf(step)
	if sc.outer == nil {
		return Call{Step: ThePlan}
	}
	return sc.of
}
