package machine

import (
	"iter"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Token names a call in subjects and documents: the step's id, or S=i for an item.
func (r *Run) Token(c Call) string {
	id := r.stepOf(c.Step).ID
	if c.Item > 0 {
		id = subjects.ItemToken(id, c.Item-1)
	}
	return subjects.InScope(r.scopeOf(c.Step).token, id)
}

// All returns the calls that there are by now: steps and items, those of scopes behind what they stand in.
func (r *Run) All() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for i := range r.calls {
			if r.calls[i].state != absent && !yield(r.calls[i].Call) {
				return
			}
		}
	}
}

// index returns the position of a call, and whether there is such a call by now.
func (r *Run) index(c Call) (int, bool) {
	if !r.isStep(c.Step) {
		return 0, false
	}
	if c.Item == 0 {
		return c.Step, true
	}
	s := &r.calls[c.Step]
	if s.items == nil || c.Item < 1 || c.Item > s.count {
		return 0, false
	}
	return s.first + c.Item - 1, true
}

// Plan returns the run's plan.
func (r *Run) Plan() *plan.Plan { return r.root.plan }

// Finished reports whether every step is terminal.
func (r *Run) Finished() bool { return r.finished }

// Result returns the record of a call's success, or nil. That of a for_each step has neither value nor handle: its
// items do.
func (r *Run) Result(c Call) *Result {
	i, ok := r.index(c)
	if !ok || r.calls[i].state != succeeded {
		return nil
	}
	return r.calls[i].result
}

// Decided returns the record that decided the last attempt of a call, or nil.
func (r *Run) Decided(c Call) *Result {
	i, ok := r.index(c)
	if !ok {
		return nil
	}
	return r.calls[i].result
}

// Contract returns the frozen contract of a step's tool. It must not be changed.
func (r *Run) Contract(step int) *tool.Contract {
	sc := r.scopeOf(step)
	return r.contracts[sc.plan.Offset+step-sc.first]
}

// PlanStep returns the step of a plan that calls with such a number are of. It must not be changed.
func (r *Run) PlanStep(step int) *plan.Step { return r.stepOf(step) }

// Scope returns the plan that a step stands in, and the number that the first step of that plan has.
func (r *Run) Scope(step int) (p *plan.Plan, first int) {
	sc := r.scopeOf(step)
	return sc.plan, sc.first
}

// MostAttempts returns how many attempts a step, or each of its items, may have. No later one is ever out.
func (r *Run) MostAttempts(step int) int {
	n, _ := r.policy(step)
	return max(n, 1)
}

// Stopping reports whether nothing new may start any more.
func (r *Run) Stopping() bool { return r.root.stopping }

// Open reports whether this attempt of a call is the one to be decided now.
func (r *Run) Open(c Call, attempt int) bool {
	i, ok := r.index(c)
	return ok && r.calls[i].state.out() && int(r.calls[i].attempt) == attempt
}

// Wanted reports whether this attempt of a call should be executed: it is open, and nobody was asked to decide it.
func (r *Run) Wanted(c Call, attempt int) bool {
	i, ok := r.index(c)
	return ok && r.Open(c, attempt) && !r.calls[i].expiring && !r.halting(i)
}

// Due returns when the attempt of a call that is to be decided now was due: when the call was ready, or, of a later
// attempt, when its pause was over.
func (r *Run) Due(c Call) time.Time {
	i, ok := r.index(c)
	if !ok {
		return time.Time{}
	}
	if s := &r.calls[i]; s.attempt > 1 {
		return s.at.time()
	}
	return r.calls[i].ready.time()
}

// Expanding reports whether a for_each step waits for the length of its list.
func (r *Run) Expanding(step int) bool {
	return r.calls[step].state == expanding && !r.isComposite(step)
}

// Items returns the number of items of a for_each step, and whether it has been expanded in this run.
func (r *Run) Items(step int) (n int, ok bool) {
	if s := &r.calls[step]; s.items != nil {
		return s.count, true
	}
	return 0, false
}

// Failure returns why a call failed, nil where it did not, and how often a worker executed it.
func (r *Run) Failure(c Call) (err *fault.Error, attempts int) {
	i, ok := r.index(c)
	if !ok || r.calls[i].state != failed {
		return nil, 0
	}
	return r.calls[i].result.Error, r.executed(i)
}
