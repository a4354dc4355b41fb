package machine

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Settled reports whether what the records came to can't change any more by what is still being read: as long as a list
// is not counted, what came after it may be computed anew.
func Settled(r *Run) bool { return !r.uncertain() }

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

// MostAttempts returns how many attempts a call of such a contract may have where its policy says so many: those in which
// its worker asks a person come on top.
func MostAttempts(c *tool.Contract, policy int) int {
	if c.Asks {
		policy += MaxAsked
	}
	return max(policy, 1)
}

// MostAttempts returns how many attempts a step, or each of its items, may have. No later one is ever out.
func (r *Run) MostAttempts(step int) int {
	n, _ := r.policy(step)
	return MostAttempts(r.Contract(step), n)
}

// PlanAsks reports whether the plan has a person approve of a call before it begins: its step says so, one that it stands
// in, or the plan for all. What its tool's contract asks for is another matter: that is asked wherever the tool is called.
func PlanAsks(r *Run, c Call) bool {
	for i, ok := r.index(c); ok; i, ok = r.index(r.scopeOf(i).of) {
		if r.stepOf(i).Approval != nil {
			return true
		}
		if r.scopeOf(i).outer == nil {
			break
		}
	}
	return r.root.base().Approval != nil
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
	return ok && r.Open(c, attempt) && !r.calls[i].expiring && !abandoned(r, i)
}

// Due returns when the attempt of a call that is to be decided now was due: when the call was ready, or, of a later
// attempt, when its pause was over.
func (r *Run) Due(c Call) time.Time {
	i, ok := r.index(c)
	if !ok {
		return time.Time{}
	}
	return r.due(i)
}

// Expanding reports whether a for_each step waits for the length of its list.
func (r *Run) Expanding(step int) bool {
	return r.calls[step].state == expanding && !r.isComposite(step)
}

// Failure returns why a call failed, nil where it did not, and how often a worker executed it.
func (r *Run) Failure(c Call) (err *fault.Error, attempts int) {
	i, ok := r.index(c)
	if !ok || r.calls[i].state != failed {
		return nil, 0
	}
	return r.calls[i].result.Error, r.executed(i)
}
