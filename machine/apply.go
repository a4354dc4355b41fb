package machine

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

func (r *Run) applyResult(rec *Record, out *Effects) {
	res := rec.Result
	if res.Token != nil {
		c, there := r.Find(*res.Token)
		if !there {
			return // its scope is not entered yet: once it can be, all is computed anew
		}
		res.Call = c
	}
	i, there := r.index(res.Call)
	if !there && (res.Item == 0 || !r.isStep(res.Step)) {
		return
	}
	switch {
	case there && (r.calls[i].state.terminal() || r.calls[i].state != waiting && res.Attempt < int(r.calls[i].attempt)):
	case there && r.calls[i].state.between() && res.Attempt == int(r.calls[i].attempt): // it has decided
	case !there || r.calls[i].state == waiting || res.Attempt > int(r.calls[i].attempt):
		if r.early == nil {
			r.early = map[attemptKey]*Record{}
		}
		held := *rec
		r.early[attemptKey{res.Call, res.Attempt}] = &held
	default:
		r.decide(i, rec, out)
	}
}

// waited returns the record of an attempt that came before the attempt was out, nil where none did. It waits no longer.
func (r *Run) waited(c Call, attempt int) *Record {
	key := attemptKey{c, attempt}
	rec := r.early[key]
	delete(r.early, key)
	return rec
}

// decide takes the record of the attempt that is out.
func (r *Run) decide(i int, rec *Record, out *Effects) {
	s, res := &r.calls[i], rec.Result
	if s.state == spread { // another owner found that the list can't be read: the record stands
		if s.failure == nil && res.Error != nil {
			s.failure = res.Error
			r.haltItems(i, rec.Time, out)
		}
		return
	}
	if s.state == entered || s.state == closing || s.state == fitting { // a composite: its own record says that it took too long
		r.overrule(i, rec, out)
		return
	}
	if awaits(r, i, res) {
		return
	}
	res = mayAsk(r, i, res)
	s.result = res
	if !res.ByOwner {
		s.executed++
	}
	if res.Error != nil || res.Asks != nil {
		attemptOver(r, i, rec.Time, out)
	}
	switch {
	case res.Asks != nil && r.halting(i): // nobody is asked any more
		r.end(i, cancelled, rec.Time, out)
	case res.Asks != nil:
		inquire(r, i, res, rec.Time, out)
	case res.Error == nil && res.ByOwner && res.Handle == nil && string(res.Value) == "null" && summary(r, s.Call): // its owner found nothing to be summarised
		r.end(i, notTaken, rec.Time, out)
	case res.Error == nil && res.ByOwner && r.scopeOf(i).asksFor != nil: // or to be asked of a guard
		r.end(i, notTaken, rec.Time, out)
	case res.Error == nil && s.state != expanding:
		r.end(i, succeeded, rec.Time, out)
	case res.Error == nil: // a for_each step itself is never executed: a record that nobody of ours wrote
		s.result = &Result{Call: s.Call, Attempt: 1, ByOwner: true, Error: fault.New(fault.ToolTerminal, "a for_each step has no result of its own")}
		r.end(i, failed, rec.Time, out)
	case r.halting(i) && res.Error.Code == fault.Cancelled:
		r.end(i, cancelled, rec.Time, out)
	case r.mayRetry(i, res):
		r.retry(i, rec, out)
	default:
		if res.Error.Code == fault.Replan && !res.ByOwner {
			replan(r, i, res.Error, rec.Time, out)
		}
		ending := refusedByOwner(r, i, res)
		r.end(i, failed, rec.Time, out)
		finish(r, ending, rec.Time, out)
	}
}

// end makes a step or an item terminal, but for a success that is still to be held against the state.
func (r *Run) end(i int, to state, at time.Time, out *Effects) {
	if to == succeeded && !passesResult(r, i, at, out) {
		return
	}
	ended(r, i, to, at, out)
}

// ended is end for a success that guards have let pass, and for all else.
func ended(r *Run, i int, to state, at time.Time, out *Effects) {
	if to == succeeded && r.stepOf(i).Held != nil {
		if to = r.values.fits(r, i, out); to == fitting {
			return
		}
	}
	if res := r.calls[i].result; res != nil {
		res.Seq = r.seq
	}
	if r.calls[i].Item > 0 {
		r.settleItem(i, to, at, out)
		return
	}
	r.settle(i, to, at, out)
}

// halting reports whether a call is to be given up: its scope stops, or the for_each step that it is an item of, or an
// amendment discarded it.
func (r *Run) halting(i int) bool {
	s := &r.calls[i]
	return r.scopeOf(i).stopping || s.Item > 0 && r.calls[s.Step].halted || discardedAbove(&r.tree, i)
}

func (r *Run) mayRetry(i int, res *Result) bool {
	most, _ := r.policy(i)
	return !r.halting(i) && r.calls[i].state != expanding && res.Error.Retryable && res.Error.Code.Retryable() && failures(r, res) < most
}

// policy returns the most attempts of a call and the pauses between them: its step's own over the frozen contract's.
func (r *Run) policy(i int) (attempts int, b tool.Backoff) {
	return r.Contract(r.calls[i].Step).Policy(r.stepOf(i).Retry)
}

// retry asks for the next attempt at its time, which is a function of the records and the run's identity alone.
func (r *Run) retry(i int, rec *Record, out *Effects) {
	s := &r.calls[i]
	_, backoff := r.policy(i)
	delay := max(backoff.Delay(failures(r, rec.Result), r.jitter(i, rec.Result.Attempt)), rec.Result.Error.RetryAfter)
	s.state, s.attempt, s.at = retrying, int32(rec.Result.Attempt+1), max(instantOf(rec.Time.Add(delay)), r.scopeOf(i).from)
	r.send(i, s.at.time(), out)
}

// jitter is a seed that every owner computes alike.
func (r *Run) jitter(i, attempt int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.start.Key))
	_, _ = h.Write([]byte(r.Token(r.calls[i].Call)))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(attempt)))
	return h.Sum64()
}

func (r *Run) applyStop(rec *Record, out *Effects) {
	if r.stop != nil || r.root.over() { // a stop after the last deciding record
		return
	}
	r.stop = rec.Stop
	if r.root.stopping { // failing fast already: what is out was asked to be decided
		return
	}
	r.root.stop(r, 0, rec.Time, out)
}

// halt lets nothing new start in a scope that stops, and in those below it: steps that are not ready are cancelled here,
// those that are out need a record, unless they are spared. A for_each step that is not counted yet comes to its end with its items, and a
// composite whose input is not read yet with its steps: another owner may have known it earlier.
func (sc *scope) halt(r *Run, at time.Time, out *Effects) {
	if sc.outer == nil {
		r.closeQuestion(Call{Step: ThePlan})
	}
	r.ordered++
	for _, x := range sc.haltedWith(r, nil) {
		dropProposal(x)
		for n := range x.plan.Steps {
			i := x.at(n)
			r.giveUp(i, at, out)
			if s := r.calls[i]; s.state == spread {
				for c := s.first; c < s.first+s.count; c++ {
					r.giveUp(c, at, out)
				}
			}
		}
		if dropGuard(r, x, at, out) || x.plan.Open { // it may have waited for amendments alone
			x.leave(r, at, out)
		}
	}
}

// haltedWith returns a scope that stops and those below it that go on, and lets them stop too.
func (sc *scope) haltedWith(r *Run, list []*scope) []*scope {
	list = append(list, sc)
	within := func(i int) {
		if x := r.insideOf(i); r.calls[i].state == entered && x.goesOn() && (!x.stopping || sc.spares == 0) {
			x.stopping, x.spares = true, sc.spares
			list = x.haltedWith(r, list)
		}
	}
	for i := range sc.plan.Steps {
		if sc.plan.Steps[i].Plan == nil {
			continue
		}
		s := &r.calls[sc.at(i)]
		within(sc.at(i))
		if s.state == spread {
			for c := s.first; c < s.first+s.count; c++ {
				within(c)
			}
		}
	}
	return list
}

// giveUp ends a call of a scope that stops where it is not ready, and asks for the record of one that is out.
func (r *Run) giveUp(i int, at time.Time, out *Effects) {
	switch r.calls[i].state {
	case waiting, held, judging, deriving, weighing, asking, closing, fitting:
		r.end(i, cancelled, at, out)
	case guarded:
		giveUpGuard(r, i, at, out)
	case ready, retrying:
		if !spared(r, i) {
			r.askDecision(i, out)
		}
	default: // over, or what is inside is asked
	}
}

// haltComposite gives up a composite that was entered.
func (r *Run) haltComposite(i int, at time.Time, out *Effects) {
	if s := r.calls[i].state; s == closing || s == fitting {
		r.end(i, cancelled, at, out)
		return
	}
	if sc := r.insideOf(i); sc.goesOn() {
		sc.stop(r, 0, at, out)
	}
}

// overrule takes the record that a composite took too long: nothing starts in its scope any more, and it fails with that
// once all that is out is decided.
func (r *Run) overrule(i int, rec *Record, out *Effects) {
	if rec.Result.Error == nil {
		return // nobody of ours wrote it
	}
	if s := r.calls[i].state; s == closing || s == fitting {
		r.fail(i, rec.Result.Error, rec.Time, out)
		return
	}
	if sc := r.insideOf(i); sc.failure == nil {
		sc.failure = rec.Result.Error
		r.haltComposite(i, rec.Time, out)
		sc.leave(r, rec.Time, out)
	}
}

// cancelledError says why a call is cancelled whose scope stops: the innermost reason counts.
func (r *Run) cancelledError(i int) *fault.Error {
	if discardedAbove(&r.tree, i) && !r.scopeOf(i).stopping {
		if isBegun(r.scopeOf(i)) {
			return notBegun()
		}
		return discardedError(&r.tree, i)
	}
	for sc := r.scopeOf(i); sc.outer != nil; sc = sc.outer {
		at, _ := r.index(sc.of)
		switch s := &r.calls[at]; {
		case discardedAbove(&r.tree, at) && !sc.outer.stopping:
			return discardedError(&r.tree, at)
		case sc.failFast >= 0:
			return stoppedBy(sc.plan.Steps[sc.failFast].ID)
		case sc.asksFor != nil && whyStopped(r, sc) != nil:
			return whyStopped(r, sc)
		case sc.round > 0 && agentAround(&r.tree, sc).whyCut(sc) != nil:
			return cutCall(r, i, *agentAround(&r.tree, sc).whyCut(sc))
		case sc.failure != nil:
			return fault.New(fault.Cancelled, "Cancelled because step '%s' failed: %s", r.Token(sc.of), sc.failure.Message)
		case s.Item > 0 && r.calls[s.Step].halted && !sc.outer.stopping:
			return r.itemCancelledError(at)
		}
	}
	if r.refused != nil {
		return r.refused
	}
	return fault.New(fault.Cancelled, "%s", r.cancelledMessage())
}

func stoppedBy(id string) *fault.Error {
	return fault.New(fault.Cancelled, "Cancelled because step '%s' failed and the plan says on_failure stop", id)
}

func (r *Run) cancelledMessage() string {
	switch {
	case r.stop != nil && r.stop.Reason == outcome.Expired:
		return "Cancelled because the run's deadline passed"
	case r.stop != nil && r.stop.By != "":
		return "Cancelled because the run was cancelled by " + r.stop.By
	case r.stop != nil:
		return "Cancelled because the run was cancelled"
	case r.root.failFast >= 0:
		return stoppedBy(r.root.plan.Steps[r.root.failFast].ID).Message
	}
	return "Cancelled"
}
