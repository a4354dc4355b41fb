package machine

import (
	"container/heap"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Deadline gives the earlier of the run's and the step's deadline, and whether the plan asked for one.
func (r *Run) Deadline(step int) (time.Time, bool) {
	d, asked := r.deadline, r.plan.TimeoutSet
	if s := r.steps[step].deadline; !s.IsZero() && (!asked || s.Before(d)) {
		return s, true
	}
	return d, asked
}

// NextDeadline gives the time of the next Tick that can have an effect. It is never zero before the run is finished.
func (r *Run) NextDeadline() time.Time {
	next := r.deadline
	if r.expiring || r.stopping {
		next = time.Time{}
	}
	if len(r.deadlines) > 0 && (next.IsZero() || r.deadlines[0].at.Before(next)) {
		next = r.deadlines[0].at
	}
	return next
}

// Tick lets time pass: it asks for the record of every step whose deadline is over, and for the stop of a run whose is.
func (r *Run) Tick(now time.Time, out *Effects) {
	if r.finished {
		return
	}
	for len(r.deadlines) > 0 && !r.deadlines[0].at.After(now) {
		i := heap.Pop(&r.deadlines).(deadline).step
		if s := &r.steps[i]; s.state == ready || s.state == retrying {
			s.expiring = true
			r.askDecision(i, out)
		}
	}
	if !r.expiring && !r.stopping && !r.deadline.After(now) {
		r.expiring = true
		out.Stop = &Stop{Reason: outcome.Expired, By: "deadline"}
	}
}

// askDecision asks for the record of the attempt that is out, with the reason that no worker may decide it any more.
func (r *Run) askDecision(i int, out *Effects) {
	s := &r.steps[i]
	var err *fault.Error
	switch {
	case r.stopping:
		err = r.cancelledError()
	default:
		err = fault.New(fault.Timeout, "the step took longer than its timeout of %s, queue and retries included", r.plan.Steps[i].Timeout)
		err.Retryable = false
		err.WithHint("give the step a longer timeout, or start fewer at once")
	}
	out.Decide = append(out.Decide, Decide{Step: i, Attempt: s.attempt, Error: err})
}

// Outstanding appends all that should be out now: for an owner that took the run over, and for the sweep.
func (r *Run) Outstanding(now time.Time, out *Effects) {
	if r.finished {
		return
	}
	for i := range r.steps {
		s := &r.steps[i]
		if s.state != ready && s.state != retrying {
			continue
		}
		if r.stopping || s.expiring {
			r.askDecision(i, out)
			continue
		}
		d := Dispatch{Step: i, Attempt: s.attempt}
		if s.state == retrying && s.at.After(now) {
			d.At = s.at
		}
		out.Dispatch = append(out.Dispatch, d)
	}
	if r.expiring && !r.stopping {
		out.Stop = &Stop{Reason: outcome.Expired, By: "deadline"}
	}
}

type deadline struct {
	at   time.Time
	step int
}

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
