package machine

import "time"

// reuse settles the steps of the plan whose results were taken over, before anything else is looked at.
func (r *Run) reuse() {
	for i, res := range r.start.Reused {
		r.root.reuseStep(r, i, res, r.start.Started)
	}
}

// reuseWithin is reuse for the steps of a composite that is entered: with the input that it had, since nothing was
// executed again that it is made of.
func (sc *scope) reuseWithin(r *Run, at time.Time) {
	if len(r.start.ReusedWithin) == 0 || !sc.sameAgain(r) {
		return
	}
	for i := range sc.plan.Steps {
		c := Call{Step: sc.at(i)}
		if res := r.start.ReusedWithin[r.Token(c)]; res != nil {
			again := *res
			again.Call = c
			sc.reuseStep(r, i, &again, at)
		}
	}
}

// sameAgain reports whether the items that a scope stands in are those of the run that this one tries again, and the
// iterations: all before were taken over, so that each begins with what it began with then.
func (sc *scope) sameAgain(r *Run) bool {
	for ; sc.outer != nil; sc = sc.outer {
		if sc.of.Item > 0 && r.taken[sc.of.Step] == nil {
			return false
		}
		if sc.iteration > 1 && !r.calls[r.loopAround(sc).of[sc.iteration-2].first].reused {
			return false
		}
	}
	return true
}

func (sc *scope) reuseStep(r *Run, step int, res *Result, at time.Time) {
	s := &r.calls[sc.at(step)]
	s.state, s.result, s.reused, s.decided = succeeded, res, true, instantOf(at)
	sc.remaining--
	sc.waves.settled(sc.plan.Steps[step].Depth)
	for _, d := range sc.plan.Dependents(step) {
		r.calls[sc.at(d)].missing--
	}
}

// TakeOver tells, before Expand, of items of a for_each step that are not executed because the run that this one tries
// again has their results, by item from 1. Which those are follows from the run's start and the list, so every owner
// tells the same.
func (r *Run) TakeOver(step int, results map[int]*Result) {
	if r.taken == nil {
		r.taken = map[int]map[int]*Result{}
	}
	r.taken[step] = results
}

// takeOver settles the items of a step whose results were taken over, before any other becomes ready.
func (r *Run) takeOver(i int, at time.Time) {
	s := r.calls[i].items
	for item, res := range r.taken[i] {
		if item < 1 || item > s.count {
			continue
		}
		x := &r.calls[s.first+item-1]
		x.state, x.result, x.reused, x.decided = succeeded, res, true, instantOf(at)
		s.left--
	}
}
