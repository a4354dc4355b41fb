package machine

import (
	"slices"

	"github.com/stepjet/stepjet/plan"
)

// standing is how the steps of a scope stand, for the rules that say what follows from it. It changes nothing, and
// numbers steps as the plan does.
type standing struct {
	*scope
	all []call // of the run
}

// call returns that of a step.
func (r standing) call(step int) *call { return &r.all[r.at(step)] }

// spoiler returns a dependency whose failure lets a step not run: the first in the order of steps that did not succeed
// and is not optional; in language 2 the first in the order in which the step refers to them, of those for which there
// is no alternative and which it does not name by $error or $status. It returns i itself where there is none.
func (r standing) spoiler(i int) int {
	if s := &r.plan.Steps[i]; r.plan.Language > 1 {
		for n := range s.Needs {
			if d := r.spoiled(s, &s.Needs[n]); d >= 0 {
				return d
			}
		}
		return i
	}
	for _, d := range r.plan.Steps[i].Deps {
		if s := r.call(d).state; s.terminal() && s != succeeded && !r.plan.Steps[d].Optional {
			return d
		}
	}
	return i // a skipped step has one
}

// spoiled returns the step whose failure leaves a need without any result, or -1. Each of its steps is over.
func (r standing) spoiled(s *plan.Step, n *plan.Need) int {
	if n.Ended {
		return -1
	}
	by := -1
	for _, d := range n.Steps {
		switch r.call(d).state {
		case succeeded:
			return -1
		case failed, skipped, cancelled:
			if by < 0 && !r.plan.Steps[d].Optional && !s.Regards(d) {
				by = d
			}
		default: // it was not taken
		}
	}
	return by
}

// lacks reports whether a step has a need for which nothing is there because a step was not taken. Nothing spoils it.
func (r standing) lacks(s *plan.Step) bool {
	return slices.ContainsFunc(s.Needs, func(n plan.Need) bool {
		if n.Ended || !n.Data {
			return false
		}
		untaken := false
		for _, d := range n.Steps {
			switch r.call(d).state {
			case succeeded:
				return false
			case notTaken:
				untaken = true
			default: // it failed, which is its own matter
			}
		}
		return untaken
	})
}

// inBlob reports whether something of a step's result lies in a blob.
func (r standing) inBlob(step int) bool {
	s := r.call(step)
	return inBlob(r.all, s)
}

// inBlob reports whether something of a call's result lies in a blob.
func inBlob(all []call, s *call) bool {
	switch {
	case s.state != succeeded:
		return false
	case s.items == nil && s.result.Parts != nil:
		return slices.ContainsFunc(s.result.Parts, func(p Part) bool { return inBlob(all, &all[p.Step]) })
	case s.items == nil:
		return s.result.Handle != nil
	}
	return slices.ContainsFunc(all[s.first:s.first+s.count], func(x call) bool {
		return x.state == succeeded && x.result.Handle != nil
	})
}

// interrupted reports whether a step was cancelled.
func (r standing) interrupted() bool {
	for i := range r.plan.Steps {
		if r.call(i).state == cancelled {
			return true
		}
	}
	return false
}

// handledBy returns the step that dealt with the failure of another, and succeeded at it, or -1: one that names it by
// $error or $status, or, where all that refers to it otherwise had another alternative, the first of those. Who dealt
// with nothing, because it did not succeed itself or was not taken, has handled nothing.
func (r standing) handledBy(i int) int {
	if r.plan.Language == 1 || r.call(i).state != failed {
		return -1
	}
	by, lost := -1, false
	for _, d := range r.plan.Dependents(i) {
		switch {
		case r.plan.Steps[d].OnlyAfter(i):
		case r.plan.Steps[d].Regards(i) && r.call(d).state == succeeded:
			return d
		case !r.hadAnother(d, i):
			lost = true
		case by < 0 && r.call(d).state == succeeded:
			by = d
		}
	}
	if lost {
		return -1
	}
	return by
}

// hadAnother reports whether wherever a step refers to another's result there was an alternative to it, as there is
// where it only names it.
func (r standing) hadAnother(step, to int) bool {
	for _, n := range r.plan.Steps[step].Needs {
		if !slices.Contains(n.Steps, to) {
			continue
		}
		if !n.Ended && !slices.ContainsFunc(n.Steps, func(d int) bool { return r.call(d).state == succeeded }) {
			return false
		}
	}
	return true
}

// excused returns which steps did not succeed and yet don't count for the run's status: failures that were handled, and
// what was skipped through those alone.
func (r standing) excused() []bool {
	of := make([]bool, len(r.plan.Steps))
	if r.plan.Language == 1 {
		return of
	}
	for _, wave := range r.plan.Waves() { // what a step refers to comes before it
		for _, i := range wave {
			switch r.call(i).state {
			case failed:
				of[i] = r.handledBy(i) >= 0
			case skipped:
				of[i] = r.skippedThrough(i, of)
			default:
			}
		}
	}
	return of
}

// skippedThrough reports whether a step was skipped through excused steps alone.
func (r standing) skippedThrough(i int, excused []bool) bool {
	s := &r.plan.Steps[i]
	return !slices.ContainsFunc(s.Needs, func(n plan.Need) bool {
		return r.spoiled(s, &n) >= 0 && slices.ContainsFunc(n.Steps, func(d int) bool {
			st := r.call(d).state
			return (st == failed || st == skipped) && !r.plan.Steps[d].Optional && !s.Regards(d) && !excused[d]
		})
	})
}

// handler returns the id of the step that dealt with the failure of another; empty where none did.
func (r standing) handler(i int) string {
	if by := r.handledBy(i); by >= 0 {
		return r.plan.Steps[by].ID
	}
	return ""
}

// bad reports whether a step did not come to the end that the plan hoped for.
func (r standing) bad() bool {
	var excused []bool // found out where there is something to excuse
	for i := range r.plan.Steps {
		if st := r.call(i).state; st == succeeded || st == notTaken || r.plan.Steps[i].Optional || r.call(i).discarded != notDiscarded {
			continue
		}
		if excused == nil {
			excused = r.excused()
		}
		if !excused[i] {
			return true
		}
	}
	return false
}
