package machine

import (
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// items is what a for_each step knows of its items, which are calls of their own.
type items struct {
	first, count int          // where they lie in Run.calls
	left         int          // that are not terminal
	halted       bool         // no further attempt begins
	failure      *fault.Error // what the step fails with, however its items end
}

// expandLater asks for the length of a for_each step's list, or uses it where it was told before.
func (r *Run) expandLater(i int, at time.Time, out *Effects) {
	r.calls[i].state = expanding
	r.uncounted++
	if rec := r.waited(r.calls[i].Call, 1); rec != nil {
		r.decide(i, rec, rec.Time, out)
		return
	}
	if n, known := r.counts[i]; known {
		r.expand(i, n, at, out)
		return
	}
	out.Expand = append(out.Expand, i)
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

// Expand tells the length of a for_each step's list, which is a function of the plan and the results of its
// dependencies. Its items become ready as of the record that made the step ready: records that have come since are
// applied anew, so that every owner reaches the same state however long it took to count.
func (r *Run) Expand(step, n int, now time.Time, out *Effects) {
	if r.counts == nil {
		r.counts = map[int]int{}
	}
	r.counts[step] = n
	s := &r.calls[step]
	if s.state != expanding {
		return
	}
	at := s.ready.time()
	if r.uncertain() || len(r.log) > 0 && r.log[len(r.log)-1].Seq > s.since {
		r.replay(now, out)
		return
	}
	r.expand(step, n, at, out)
	r.admit(at, out)
	r.finishIfOver(out) // a list without items may have been all that was left
	r.withhold(out)
}

// uncertain reports whether the run may have stopped by records that are here already: a list hasn't been counted, and
// records wait for calls that aren't out, so another owner had counted it and gone on. One of them may be the failure
// that stopped the run, and then all that became ready since never did. In language 2 no record is needed for that: what
// follows from an empty list may be a condition that fails.
func (r *Run) uncertain() bool {
	return r.root.plan.OnFailure == plan.Stop && (len(r.early) > 0 || r.root.plan.Language > 1) && r.uncounted > 0
}

// withhold takes back what would have an effect on a call as long as it isn't certain that the call is out. All of it
// is asked for once the lists are counted.
func (r *Run) withhold(out *Effects) {
	if r.uncertain() {
		out.Dispatch, out.Late, out.Decide = out.Dispatch[:0], out.Late[:0], out.Decide[:0]
		out.Ask, out.Weigh, out.Expire = out.Ask[:0], out.Weigh[:0], out.Expire[:0]
	}
}

func (r *Run) expand(i, n int, at time.Time, out *Effects) {
	first := len(r.calls)
	r.calls = slices.Grow(r.calls, n)[:first+n]
	s := &r.calls[i]
	r.uncounted--
	s.state, s.items = spread, &items{first: first, count: n, left: n}
	if n == 0 {
		r.gather(i, at, out)
		return
	}
	for item := 1; item <= n; item++ {
		r.calls[first+item-1] = call{Call: Call{i, item}}
	}
	r.takeOver(i, at)
	if s.left == 0 {
		r.gather(i, at, out)
		return
	}
	for c := first; c < first+n && !r.calls[i].halted; c++ { // a record that came early may end it here and now
		if r.calls[c].state == waiting {
			r.makeReady(c, at, out)
		}
	}
	r.settleUnsent(i, at, out)
}

// settleUnsent cancels the items of a step that was halted before they became ready.
func (r *Run) settleUnsent(i int, at time.Time, out *Effects) {
	s := r.calls[i].items
	if !s.halted {
		return
	}
	for c := s.first; c < s.first+s.count; c++ {
		if r.calls[c].state == waiting {
			r.settleItem(c, cancelled, at, out)
		}
	}
}

// settleItem makes an item terminal, and its step with the last one.
func (r *Run) settleItem(c int, to state, at time.Time, out *Effects) {
	x := &r.calls[c]
	if x.state.terminal() {
		return
	}
	if x.state.out() {
		r.leaveRoom(c)
	}
	x.state, x.decided = to, instantOf(at)
	r.closeQuestion(x.Call)
	out.Settled = append(out.Settled, x.Call)
	s := &r.calls[x.Step]
	s.left--
	if to == failed && !s.halted && r.Contract(x.Step).ErrorPropagation == tool.FailFast {
		r.haltItems(x.Step, at, out)
	}
	if s.left == 0 && !s.state.terminal() {
		r.gather(x.Step, at, out)
	}
}

// haltItems lets no further attempt of a step's items begin. Those that wait for room or for a person were never sent, so
// they need no record.
func (r *Run) haltItems(i int, at time.Time, out *Effects) {
	s := &r.calls[i]
	s.halted = true
	for c := s.first; c < s.first+s.count; c++ {
		switch x := &r.calls[c]; {
		case x.state.out():
			r.askDecision(c, out)
		case x.state == held, x.state.asks():
			r.settleItem(c, cancelled, at, out)
		}
	}
}

// gather ends a for_each step whose items are all terminal. What it comes to depends on how they ended, not on when.
func (r *Run) gather(i int, at time.Time, out *Effects) {
	s := &r.calls[i]
	if s.state.terminal() {
		return // with an item that was given up meanwhile
	}
	var size int64
	worst := s.failure
	interrupted := false
	for c := s.first; c < s.first+s.count; c++ {
		x := &r.calls[c]
		switch x.state {
		case succeeded:
			size += x.result.Size
		case failed:
			if worst == nil {
				worst = itemFailure(x)
			}
		case cancelled:
			interrupted = true
		default: // it is not over
		}
	}
	partial := r.Contract(i).ErrorPropagation != tool.FailFast && s.failure == nil
	switch {
	case r.scopeOf(i).stopping && interrupted:
		s.result = nil
		r.settle(i, cancelled, at, out)
	case worst == nil || partial:
		s.result = &Result{Call: s.Call, Attempt: 1, Size: size}
		r.settle(i, succeeded, at, out)
	default:
		s.result = &Result{Call: s.Call, Attempt: 1, Error: worst}
		r.settle(i, failed, at, out)
	}
}

// itemFailure is the error of a step of which one item failed.
func itemFailure(x *call) *fault.Error {
	err := *x.result.Error
	err.Message = "item " + strconv.Itoa(x.Item-1) + ": " + err.Message
	err.Retryable = false
	return &err
}

func (r *Run) itemCancelledError(i int) *fault.Error {
	s := &r.calls[r.calls[i].Step]
	for c := s.first; c < s.first+s.count; c++ {
		if r.calls[c].state == failed {
			return fault.New(fault.Cancelled, "Cancelled because item %d of the step failed", r.calls[c].Item-1).
				WithHint("the tool's error_propagation is fail-fast")
		}
	}
	return fault.New(fault.Cancelled, "Cancelled because the step failed")
}
