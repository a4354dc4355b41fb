package machine

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
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
	if rec := r.waited(r.calls[i].Call, 1); rec != nil && !awaits(r, i, rec.Result) {
		r.decide(i, rec, out)
		return
	}
	if n, known := r.counts[i]; known {
		r.expand(i, n, at, out)
		return
	}
	out.Expand = append(out.Expand, i)
}

// Expand tells the length of a for_each step's list, which is a function of the plan and the results of its
// dependencies. Its items become ready as of the record that made the step ready: records that have come since are
// applied anew, so that every owner reaches the same state however long it took to count.
func (r *Run) Expand(step, n int, now time.Time, out *Effects) {
	if r.counts == nil {
		r.counts = map[int]int{}
	}
	r.counts[step], r.now = n, now
	if r.calls[step].state != expanding || r.kept.missing {
		return
	}
	if r.overfull(step, n) || r.belated(step) {
		r.replay(now, out)
		return
	}
	r.join(step, now, out, func(at time.Time) { r.expand(step, n, at, out) })
}

// awaits reports whether the record of a composite counts only once its list, or its input, is read: that it took too long
// was said by somebody who had read it, and to whom what is inside may have come to its end before. From then on all is
// computed anew.
func awaits(r *Run, i int, res *Result) bool {
	s := &r.calls[i]
	if s.state != expanding || r.stepOf(i).Plan == nil || res.Error == nil || r.scopes.isLost(s.Call) {
		return false
	}
	return res.Error.Code == fault.Timeout || res.Error.Code == fault.Cancelled
}

// Lost tells that the list, or the input, of a composite can't be read, and reports whether a record stands already, of
// somebody who could: then that counts. Else the reason is to be recorded.
func Lost(r *Run, c Call, now time.Time, out *Effects) bool {
	i, ok := r.index(c)
	if !ok || r.calls[i].state != expanding || r.kept.missing {
		return true
	}
	stands := func(l Record) bool {
		if l.Result == nil || l.Result.Attempt != 1 {
			return false
		}
		return l.Result.Call == c || l.Result.Token != nil && *l.Result.Token == r.Token(c)
	}
	if !slices.ContainsFunc(r.log, stands) {
		return false
	}
	all := r.nested()
	if all.lost == nil {
		all.lost = map[Call]bool{}
	}
	all.lost[c], r.now = true, now
	r.replay(now, out)
	return true
}

func (s *scopes) isLost(c Call) bool { return s != nil && s.lost[c] }

// belated reports whether what a call waited for comes later than for another owner: then the order in which things
// happen is found out from all that is known by now.
func (r *Run) belated(i int) bool {
	return r.stops && len(r.early) > 0 || r.halting(i) || len(r.log) > 0 && r.log[len(r.log)-1].Seq > r.calls[i].since
}

// join lets happen what follows from a list or an input that is told now, as of the record that it was there with. In a
// run that may stop others may be unknown yet, which come first in the plan: if what happens here is of those things of
// which the order counts, all is computed anew once more is known. Otherwise nothing is, for the lists may be many.
func (r *Run) join(i int, now time.Time, out *Effects, happen func(at time.Time)) {
	at, uncertain, ordered := r.calls[i].ready.time(), r.uncertain(), r.ordered
	happen(at)
	if uncertain && r.ordered != ordered {
		r.replay(now, out)
		return
	}
	r.admit(at, out)
	r.finishIfOver(out) // a list without items may have been all that was left
	r.withhold(out)
}

// uncertain reports whether the run may have stopped by records that are here already: a list hasn't been counted, and
// records wait for calls that aren't out, so another owner had counted it and gone on. One of them may be the failure
// that stopped the run, and then all that became ready since never did. In language 2 no record is needed for that: what
// follows from an empty list may be a condition that fails.
func (r *Run) uncertain() bool {
	return r.stops && (len(r.early) > 0 || r.root.plan.Language > 1) && r.uncounted > 0
}

// withhold takes back what would have an effect on a call as long as it isn't certain that the call is out. All of it
// is asked for once the lists are counted.
func (r *Run) withhold(out *Effects) {
	switch {
	case r.kept.missing: // all is asked for anew
	case r.uncertain():
		if r.withheld == nil {
			r.withheld = &Effects{}
		}
		r.withheld.move(out)
	case r.withheld != nil:
		out.move(r.withheld)
		r.withheld = nil
	}
}

func (r *Run) expand(i, n int, at time.Time, out *Effects) {
	r.uncounted--
	err := r.tooMany(i, n)
	if err != nil { // before there is anything of them
		r.ordered++
		n = 0
	}
	first := r.blockFor(i, n)
	s := &r.calls[i]
	s.state, s.items = spread, &items{first: first, count: n, left: n, failure: err}
	if n == 0 {
		r.gather(i, at, out)
		return
	}
	for item := 1; item <= n; item++ {
		x := &r.calls[first+item-1]
		*x = call{Call: Call{i, item}, state: waiting, scope: s.scope, below: x.below}
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
	switch {
	case x.state == expanding:
		r.uncounted--
	case x.state.out():
		r.scopeOf(c).bounded().take(-1)
	}
	x.state, x.decided = to, instantOf(at)
	r.closeQuestion(x.Call)
	out.Settled = append(out.Settled, x.Call)
	endedIn(r, r.scopeOf(c), x.Call)
	s := &r.calls[x.Step]
	s.left--
	if to == failed && !s.halted && r.failsFast(x.Step) {
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
	r.ordered++
	for c := s.first; c < s.first+s.count; c++ {
		switch x := &r.calls[c]; {
		case x.state.out():
			r.askDecision(c, out)
		case x.state == held, x.state.asks():
			r.settleItem(c, cancelled, at, out)
		case x.state == guarded:
			giveUpGuard(r, c, at, out)
		case x.state == entered || x.state == closing:
			r.haltComposite(c, at, out)
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
	partial := !r.failsFast(i) && s.failure == nil
	switch {
	case (r.scopeOf(i).stopping || s.discarded != notDiscarded) && interrupted:
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

// tooMany returns why the items of a composite can't be entered: with their steps the run would have too many.
func (r *Run) tooMany(i, n int) *fault.Error {
	p := r.stepOf(i).Plan
	if p == nil || int(r.steps)+n*len(p.Steps) <= plan.MaxSteps {
		return nil
	}
	err := tooManySteps(len(p.Steps))
	err.Message = fmt.Sprintf("the plans of its %d items have %d steps together, and with them the run would have more than %d", n, n*len(p.Steps), plan.MaxSteps)
	return err
}

// overfull reports whether a list that is counted now makes the run too large. Whose turn it was is then to be found out
// from all that is known, since another owner may have counted it earlier.
func (r *Run) overfull(i, n int) bool { return r.tooMany(i, n) != nil }

func (r *Run) itemCancelledError(i int) *fault.Error {
	if discardedAbove(&r.tree, i) {
		return discardedError(&r.tree, i)
	}
	s := &r.calls[r.calls[i].Step]
	why := "the tool's error_propagation is fail-fast"
	switch step := r.stepOf(i); {
	case step.Agent() != nil:
		why = "the first agent of a list that fails lets no other go on; call them in steps of their own where the others are to go on"
	case step.Plan != nil:
		why = `the first plan of an item that fails lets no other go on; "partial": true beside the plan may let it succeed`
	}
	for c := s.first; c < s.first+s.count; c++ {
		if r.calls[c].state == failed {
			return fault.New(fault.Cancelled, "Cancelled because item %d of the step failed", r.calls[c].Item-1).WithHint("%s", why)
		}
	}
	return fault.New(fault.Cancelled, "Cancelled because the step failed")
}
