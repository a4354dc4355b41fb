package machine

import (
	"container/heap"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

// Deadline returns the earliest of the deadlines of the run, of a call and of the composites above it, and whether the
// plan asked for one. An item has its step's, unless it was asked for by itself.
func (r *Run) Deadline(c Call) (time.Time, bool) {
	d, asked := r.deadline, r.root.plan.TimeoutSet
	for {
		s := r.calls[c.Step].deadline.time()
		if i, ok := r.index(c); ok && s.IsZero() {
			s = r.calls[i].deadline.time()
		}
		if !s.IsZero() && (!asked || s.Before(d)) {
			d, asked = s, true
		}
		sc := r.scopeOf(c.Step)
		if sc.outer == nil {
			return d, asked
		}
		c = sc.of
	}
}

// timesEach reports whether each item of a for_each step has the step's time from where it begins, since it may begin later
// than the step: it may wait for a person, a guard, or room.
func timesEach(r *Run, i int) bool {
	step := r.calls[i].Step
	s := r.stepOf(step)
	switch {
	case s.ForEach == nil || s.Repeat != nil:
		return false
	case r.asksEach(step), s.Plan == nil && r.scopeOf(step).bounded() != nil:
		return true
	}
	sc := plannedIn(r, step)
	if sc == nil {
		return false
	}
	of, _ := guardsOf(r, sc)
	_, _, asks := of.Tool(plan.OnCall, 0)
	return asks || of.Asks(plan.OnCall)
}

// StartBy returns the time after which the attempt of a call that is out may not begin any more; zero for never.
func (r *Run) StartBy(c Call) time.Time {
	w := r.Contract(c.Step).WaitTimeout
	i, ok := r.index(c)
	if !ok || w == 0 {
		return time.Time{}
	}
	return r.due(i).Add(w)
}

// due returns the time from which on the attempt of a call that is out could be executed.
func (r *Run) due(i int) time.Time {
	s := &r.calls[i]
	return max(s.at, s.ready).time()
}

// LateError is what an attempt is decided with that no worker took in time.
func (r *Run) LateError(c Call) *fault.Error {
	err := fault.New(fault.Timeout, "no worker took the step within %s", r.Contract(c.Step).WaitTimeout)
	err.Retryable = false
	return err.WithHint("the tool's wait_timeout_ms bounds the wait for a slot; start more workers, raise the tool's limit, or wait longer")
}

// NextDeadline returns the time of the next Tick that can have an effect. It is never zero before the run is
// finished, unless it waits for values (Recalls).
func (r *Run) NextDeadline() time.Time {
	if r.kept.missing {
		return time.Time{}
	}
	next := r.deadline
	if r.expiring || r.root.stopping {
		next = time.Time{}
	}
	if len(r.deadlines) > 0 && (next.IsZero() || r.deadlines[0].at.Before(next)) {
		next = r.deadlines[0].at
	}
	return next
}

// Tick lets time pass: it asks for the record of every step whose deadline is over, and for the stop of a run whose is.
func (r *Run) Tick(now time.Time, out *Effects) {
	if r.finished || r.kept.missing {
		return
	}
	for len(r.deadlines) > 0 && !r.deadlines[0].at.After(now) {
		d := heap.Pop(&r.deadlines).(deadline)
		switch s := &r.calls[d.call]; {
		case d.attempt == toBeClosed:
			r.scopeNumbered(d.call).expire(r, &d, out)
		case d.question != nil:
			r.expire(d.question, out)
		case d.attempt > 0:
			if s.state.out() && int(s.attempt) == d.attempt && !s.expiring && !abandoned(r, d.call) {
				out.Late = append(out.Late, Dispatch{Call: s.Call, Attempt: int(s.attempt)})
			}
		case s.state.out() || s.state == entered || s.state == closing:
			s.expiring = true
			r.askDecision(d.call, out)
		case s.state == expanding: // its items will be asked for, once they are known
			s.expiring = true
		case s.state == held: // its worker was answered: it will be asked for, once there is room
			s.expiring = true
		case s.state == spread && r.stepOf(d.call).Plan != nil: // by one record of its own
			s.expiring = true
			r.askDecision(d.call, out)
		case s.state == spread:
			r.expireItems(d.call, out)
		}
	}
	if !r.expiring && !r.root.stopping && !r.deadline.After(now) {
		r.expiring = true
		out.Stop = &Stop{Reason: outcome.Expired, By: "deadline"}
	}
	r.withhold(out)
}

// expireItems asks for the record of every item of a for_each step whose deadline is over.
func (r *Run) expireItems(i int, out *Effects) {
	s := &r.calls[i]
	s.expiring = true
	for c := s.first; c < s.first+s.count; c++ {
		switch x := &r.calls[c]; {
		case x.state == held: // it will be asked for, once there is room
			x.expiring = true
		case x.state.out() && !x.expiring:
			x.expiring = true
			r.askDecision(c, out)
		}
	}
}

// askDecision asks for the record of the attempt that is out, with the reason that no worker may decide it any more.
func (r *Run) askDecision(i int, out *Effects) {
	s := &r.calls[i]
	var err *fault.Error
	switch {
	case abandoned(r, i) && (r.scopeOf(i).stopping || discardedAbove(&r.tree, i)):
		err = r.cancelledError(i)
	case abandoned(r, i):
		err = r.itemCancelledError(i)
	default:
		err = fault.New(fault.Timeout, "the step took longer than its timeout of %s, queue and retries included", r.stepOf(i).Timeout)
		err.Retryable = false
		err.WithHint("give the step a longer timeout, or start fewer at once")
		if a := agentAt(&r.tree, s.Call); a != nil {
			err = a.withRounds(r, err)
		}
	}
	out.Decide = append(out.Decide, Decide{Call: s.Call, Attempt: int(s.attempt), Error: err})
}

// Outstanding appends all that should be out now: for an owner that took the run over, and for the sweep.
func (r *Run) Outstanding(now time.Time, out *Effects) {
	if r.finished || r.kept.missing {
		return
	}
	if r.withheld != nil {
		r.withheld = &Effects{Late: r.withheld.Late} // all else is asked for here
	}
	r.outstandingQuestion(Call{Step: ThePlan}, out)
	for _, a := range r.list {
		if a.Waits() && a.asked.Step != ThePlan {
			r.outstandingQuestion(a.asked.Call, out)
		}
	}
	for i := range r.calls {
		s := &r.calls[i]
		switch {
		case s.state == asking:
			r.outstandingQuestion(s.Call, out)
		case s.state == weighing:
			out.Weigh = append(out.Weigh, s.Call)
		case s.state == expanding && r.isComposite(i):
			out.Enter = append(out.Enter, s.Call)
		case s.state == expanding:
			out.Expand = append(out.Expand, i)
		case s.state == closing:
			r.askToClose(i, out)
		case s.state == judging:
			out.Judge = append(out.Judge, i)
		case s.state == deriving:
			r.values.ask(i, out)
		case s.state == fitting:
			out.Fit = append(out.Fit, i)
		case s.state == entered && r.asksGuard(s.Call):
			r.outstandingQuestion(s.Call, out)
			if s.expiring && r.tookTooLong(i) {
				r.askDecision(i, out)
			}
		case s.expiring && r.tookTooLong(i):
			r.askDecision(i, out)
		case !s.state.out():
		case abandoned(r, i) || s.expiring:
			r.askDecision(i, out)
		default:
			d := Dispatch{Call: s.Call, Attempt: int(s.attempt)}
			if at := s.at.time(); at.After(now) {
				d.At = at
			}
			out.Dispatch = append(out.Dispatch, d)
		}
	}
	for _, sc := range openScopes(&r.tree) {
		sc.askClose(r, out)
	}
	if r.Shaping(r.root.of) {
		out.Shape = append(out.Shape, r.root.of)
	}
	if r.expiring && !r.root.stopping {
		out.Stop = &Stop{Reason: outcome.Expired, By: "deadline"}
	}
	r.withhold(out)
}

// tookTooLong reports whether a composite, or a for_each step of such, is to be decided by a record of its own.
func (r *Run) tookTooLong(i int) bool {
	s := &r.calls[i]
	switch {
	case s.state == entered:
		return r.insideOf(i).failure == nil && !abandoned(r, i)
	case s.state == spread && r.stepOf(i).Plan != nil:
		return s.failure == nil && !abandoned(r, i)
	}
	return false
}

// askToClose asks for the record that a composite waits for whose steps are over: of what it comes to, whether its loop
// goes on, what its planner's answer comes to, or what a person says of that.
func (r *Run) askToClose(i int, out *Effects) {
	switch sc := r.insideOf(i); {
	case sc.shaping:
		out.Shape = append(out.Shape, sc.of)
	case sc.round > 0 && agentAround(&r.tree, sc).pending != nil:
		r.outstandingQuestion(sc.of, out)
	case sc.round > 0:
		out.Round = append(out.Round, sc.of)
	default:
		out.Until = append(out.Until, r.calls[sc.first].Call)
	}
}

type deadline struct {
	at       time.Time
	call     int
	attempt  int       // that should have begun; 0: the step should be over; toBeClosed: call is the number of an open scope
	question *Question // that should be answered; nil: it is about the call
}

func (d *deadlines) add(x deadline) { heap.Push(d, x) }

type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}
