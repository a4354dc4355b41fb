package machine

import (
	"cmp"
	"iter"
	"slices"

	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// tree is what stands where in a run: its calls, the scopes that they stand in, and what the plan and the contracts say
// of each. What becomes of a call is for Run to say.
type tree struct {
	root   scope   // of the plan that was submitted
	scopes *scopes // of the composites within it; nil before the first
	calls  []call  // the plan's steps, and behind them items of for_each steps and the steps of scopes, as they came

	contracts []*tool.Contract // of the tools of the steps of all plans, as Plan.Offset has them
	submitted int              // how many of those are of the plan that was submitted
}

// Plan returns the run's plan.
func (t *tree) Plan() *plan.Plan { return t.root.plan }

// scopeOf returns the scope that a call stands in.
func (t *tree) scopeOf(i int) *scope {
	return t.scopeNumbered(int(t.calls[i].scope))
}

// scopeNumbered returns the scope of a number; 0 is the root.
func (t *tree) scopeNumbered(n int) *scope {
	if n > 0 {
		return t.scopes.below[n-1]
	}
	return &t.root
}

// stepOf returns the plan's step that a call belongs to.
func (t *tree) stepOf(i int) *plan.Step {
	sc := t.scopeOf(i)
	return &sc.plan.Steps[sc.numberOf(t.calls[i].Step)]
}

// isStep reports whether there is a step of such a number by now.
func (t *tree) isStep(step int) bool {
	return step >= 0 && step < len(t.calls) && t.calls[step].Item == 0 && t.calls[step].state != absent
}

// isComposite reports whether a call is entered instead of sent to a worker. The for_each step of such is not: its items
// are.
func (t *tree) isComposite(i int) bool {
	s := t.stepOf(i)
	return s.Plan != nil && (s.ForEach == nil || t.calls[i].Item > 0)
}

// isForWorker reports whether a call is one that a worker is handed: neither a composite nor a for_each step itself.
func (t *tree) isForWorker(i int) bool {
	s := t.stepOf(i)
	return s.Plan == nil && (s.ForEach == nil || t.calls[i].Item > 0)
}

// index returns the position of a call, and whether there is such a call by now.
func (t *tree) index(c Call) (int, bool) {
	if !t.isStep(c.Step) {
		return 0, false
	}
	if c.Item == 0 {
		return c.Step, true
	}
	s := &t.calls[c.Step]
	if s.items == nil || c.Item < 1 || c.Item > s.count {
		return 0, false
	}
	return s.first + c.Item - 1, true
}

// All returns the calls that there are by now: steps and items, those of scopes behind what they stand in.
func (t *tree) All() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for i := range t.calls {
			if t.calls[i].state != absent && !yield(t.calls[i].Call) {
				return
			}
		}
	}
}

// Contract returns the frozen contract of a step's tool. It must not be changed.
func (t *tree) Contract(step int) *tool.Contract {
	sc := t.scopeOf(step)
	return t.contracts[sc.contractOf(step)]
}

// PlanStep returns the step of a plan that calls with such a number are of. It must not be changed.
func (t *tree) PlanStep(step int) *plan.Step { return t.stepOf(step) }

// Scope returns the plan that a step stands in, as it is now, and the numbers of the steps of that plan.
func (t *tree) Scope(step int) (p *plan.Plan, of Numbers) {
	sc := t.scopeOf(step)
	return sc.plan, sc.numbers()
}

// Items returns the number of items of a for_each step, and whether it has been expanded in this run.
func (t *tree) Items(step int) (n int, ok bool) {
	if s := &t.calls[step]; s.items != nil {
		return s.count, true
	}
	return 0, false
}

// Composite returns the composite whose scope a step stands in; its Step is ThePlan for a step of the plan that was
// submitted.
func (t *tree) Composite(step int) Call {
	sc := t.scopeOf(step)
	if sc.outer == nil {
		return Call{Step: ThePlan}
	}
	return sc.of
}

// inside returns the scope that a composite was entered with, nil for any other call.
func (t *tree) inside(c Call) *scope {
	i, ok := t.index(c)
	if !ok {
		return nil
	}
	return t.insideOf(i)
}

// insideOf is inside for a call that there is.
func (t *tree) insideOf(i int) *scope {
	n := t.calls[i].below
	if n == 0 || !t.isComposite(i) {
		return nil
	}
	switch s := t.stepOf(i); {
	case s.Repeat != nil:
		return t.scopes.loops[n-1].current()
	case s.Agent() != nil:
		return t.scopes.agents[n-1].current()
	}
	sc := t.scopes.below[n-1]
	if !isEntered(t, sc, i) {
		return nil
	}
	return sc
}

// isEntered reports whether the one scope of a composite was entered: its steps are there then. One that begins without any
// is entered as soon as its composite has begun.
func isEntered(t *tree, sc *scope, i int) bool {
	if len(sc.base().Steps) == 0 {
		return t.calls[i].attempt > 0 && t.calls[i].state != ready
	}
	return t.calls[sc.first].state != absent
}

// Inside returns the plan of each scope that a composite was entered with, as it is now, and the numbers of its steps. A
// loop has one for each iteration, of one step; an agent one for each call of its planner, and one for what each round
// runs; any other composite has one, and any other call none.
func (t *tree) Inside(c Call) iter.Seq2[*plan.Plan, Numbers] {
	return func(yield func(*plan.Plan, Numbers) bool) {
		for sc := range t.within(c) {
			if !yield(sc.plan, sc.numbers()) {
				return
			}
		}
	}
}

// within is Inside by scopes.
func (t *tree) within(c Call) iter.Seq[*scope] {
	return func(yield func(*scope) bool) {
		switch sc := t.inside(c); {
		case sc == nil:
		case sc.round > 0:
			for x := range allOf(agentAround(t, sc)) {
				if !yield(x) {
					return
				}
			}
		case sc.iteration == 0:
			yield(sc)
		default:
			for _, x := range t.loopAround(sc).of[:sc.iteration] {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// insideBy returns the scope of a composite in which a segment of a token stands: the iteration that it names, or the one
// scope that there is.
func (t *tree) insideBy(c Call, x *subjects.Segment) *scope {
	sc := t.inside(c)
	switch {
	case sc == nil, (sc.iteration > 0) != (x.Kind == subjects.IterationSegment), x.Number >= int(sc.iteration) && sc.iteration > 0:
		return nil
	case sc.iteration > 0:
		return t.loopAround(sc).of[x.Number]
	}
	return sc
}

// scopeFor returns the scope of a composite that was entered, or the root; nil for any other call.
func (t *tree) scopeFor(of Call) *scope {
	if of.Step == ThePlan {
		return &t.root
	}
	return t.inside(of)
}

// before compares calls in the order of the plans, those of a composite in its place, items by their number.
func (t *tree) before(a, b int) int {
	x, y := t.calls[a].Call, t.calls[b].Call
	of, other := t.scopeOf(a), t.scopeOf(b)
	for of != other {
		up := of.depth - other.depth
		if up >= 0 {
			x, of = of.of, of.outer
		}
		if up <= 0 {
			y, other = other.of, other.outer
		}
	}
	return cmp.Or(cmp.Compare(x.Step, y.Step), cmp.Compare(x.Item, y.Item))
}

// Input returns the input of the scope that a step stands in, nil for a step of the plan that was submitted. Where away
// is true the shell has to make it, of the arguments of the scope's composite.
func (t *tree) Input(step int) (value []byte, away bool) {
	in := t.scopeOf(step).input
	return in.value, in.away || in.gone
}

// Elements tells, before Expand, the list of a for_each step that is a composite: its items' inputs are made of them.
func (t *tree) Elements(step int, list [][]byte) {
	s := t.nested()
	if s.elements == nil {
		s.elements = map[int][][]byte{}
	}
	s.elements[step] = list
}

// nested returns the scopes below the root, of which there may be none.
func (t *tree) nested() *scopes {
	if t.scopes == nil {
		t.scopes = &scopes{}
	}
	return t.scopes
}

// placeFor returns the scope of a composite, which has a place among the calls from then on.
func (t *tree) placeFor(i int) *scope {
	if n := t.calls[i].below; n > 0 && t.scopes.below[n-1].base() == t.stepOf(i).Plan {
		return t.scopes.below[n-1]
	}
	sc := t.newScope(i)
	t.calls[i].below = sc.number
	return sc
}

// newScope returns another scope of a composite, which has a place among the calls from then on.
func (t *tree) newScope(i int) *scope { return newScopeOf(t, i, t.stepOf(i).Plan) }

// newScopeOf is newScope for a plan that the composite's step does not have.
func newScopeOf(t *tree, i int, p *plan.Plan) *scope {
	c, outer := t.calls[i].Call, t.scopeOf(i)
	x := &struct {
		scope
		at place
	}{
		scope{plan: p, first: len(t.calls), number: int32(len(t.nested().below) + 1)},
		place{of: c, outer: outer, depth: outer.depth + 1, token: t.Token(c)},
	}
	sc := &x.scope
	sc.place = &x.at
	t.scopes.below = append(t.scopes.below, sc)
	t.calls = slices.Grow(t.calls, len(p.Steps))[:sc.first+len(p.Steps)]
	return sc
}

// blockFor returns where the items of a for_each step have their place among the calls.
func (t *tree) blockFor(i, n int) int {
	// One that is too short was made before an amendment came to stand elsewhere, of which the list is a function.
	if first := int(t.calls[i].below) - 1; first >= 0 && (n == 0 || first+n <= len(t.calls) && t.calls[first+n-1].Item == n) {
		return first
	}
	if n == 0 {
		return len(t.calls)
	}
	first, each := len(t.calls), 1
	if p := t.stepOf(i).Plan; p != nil {
		each += len(p.Steps) + stepsWithin(p)
	}
	t.calls = slices.Grow(t.calls, n*each)[:first+n]
	t.calls[i].below = int32(first + 1)
	return first
}

// failsFast reports whether the first failure among the items of a for_each step lets no other begin. Those of a
// composite do.
func (t *tree) failsFast(i int) bool {
	return t.stepOf(i).Plan != nil || t.Contract(i).ErrorPropagation == tool.FailFast
}

// asks reports whether a person is asked before a call that is ready begins, in the name of its step or the contract of
// its tool. A condition of the contract is not looked at.
func (t *tree) asks(i int) bool {
	s, p := &t.calls[i], t.stepOf(i)
	if p.Repeat != nil { // else each iteration is asked for by itself
		return p.Approval != nil && p.Approval.All && s.Item == 0
	}
	if p.ForEach != nil {
		together := p.Approval != nil && p.Approval.All
		if together != (s.Item == 0) {
			return false // asked for with all others, or each by itself
		}
	}
	return p.Ask || p.Approval != nil || t.Contract(s.Step).Approval == tool.AlwaysApprove
}

// weighs reports whether the contract's condition decides whether a person is asked.
func (t *tree) weighs(i int) bool {
	s, p := &t.calls[i], t.stepOf(i)
	if p.Ask || p.Approval != nil || p.ForEach != nil && s.Item == 0 {
		return false
	}
	a := t.Contract(s.Step).Approval
	return a != "" && a != tool.AlwaysApprove
}

// asksEach reports whether each item of a for_each step may wait for a person by itself, as its plan or its tool says.
func (t *tree) asksEach(step int) bool {
	p := t.stepOf(step)
	if p.ForEach == nil || p.Repeat != nil || p.Approval != nil && p.Approval.All {
		return false
	}
	return p.Ask || p.Approval != nil || t.Contract(step).Approval != ""
}
