package machine

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

func (r *Run) applyResult(rec *Record, now time.Time, out *Effects) {
	i, attempt := rec.Result.Step, rec.Result.Attempt
	if i < 0 || i >= len(r.steps) {
		return
	}
	s := &r.steps[i]
	switch {
	case s.state.terminal() || s.state != waiting && attempt < s.attempt:
	case s.state == waiting || attempt > s.attempt:
		if r.early == nil {
			r.early = map[attemptKey]*Record{}
		}
		held := *rec
		r.early[attemptKey{i, attempt}] = &held
	default:
		r.decide(i, rec, now, out)
	}
}

// decide takes the record of the attempt that is out.
func (r *Run) decide(i int, rec *Record, now time.Time, out *Effects) {
	s, res := &r.steps[i], rec.Result
	s.result = res
	if !res.ByOwner {
		s.executed++
	}
	switch {
	case res.Error == nil:
		r.settle(i, succeeded, rec.Time, out)
	case r.stopping && res.Error.Code == fault.Cancelled:
		r.settle(i, cancelled, rec.Time, out)
	case r.mayRetry(i, res):
		r.retry(i, rec, now, out)
	case r.plan.OnFailure == plan.Stop && !r.plan.Steps[i].Optional && !r.stopping:
		r.failFast = i
		r.stopping = true
		r.settle(i, failed, rec.Time, out)
		r.halt(rec.Time, out)
	default:
		r.settle(i, failed, rec.Time, out)
	}
}

func (r *Run) mayRetry(i int, res *Result) bool {
	most, _ := r.policy(i)
	return !r.stopping && res.Error.Retryable && res.Error.Code.Retryable() && res.Attempt < most
}

// policy gives the most attempts of a step and the pauses between them: the step's own over the frozen contract's.
func (r *Run) policy(i int) (attempts int, b tool.Backoff) {
	return r.Contract(i).Policy(r.plan.Steps[i].Retry)
}

// retry asks for the next attempt at its time, which is a function of the records and the run's identity alone.
func (r *Run) retry(i int, rec *Record, now time.Time, out *Effects) {
	s := &r.steps[i]
	_, backoff := r.policy(i)
	delay := max(backoff.Delay(rec.Result.Attempt, r.jitter(i, rec.Result.Attempt)), rec.Result.Error.RetryAfter)
	s.state, s.attempt, s.at = retrying, rec.Result.Attempt+1, rec.Time.Add(delay)
	if next, ok := r.early[attemptKey{i, s.attempt}]; ok {
		r.decide(i, next, now, out)
		return
	}
	if s.expiring { // its deadline passed while the record of the last attempt was on its way
		r.askDecision(i, out)
		return
	}
	d := Dispatch{Step: i, Attempt: s.attempt}
	if s.at.After(now) {
		d.At = s.at
	}
	out.Dispatch = append(out.Dispatch, d)
}

// jitter is a seed that every owner computes alike.
func (r *Run) jitter(i, attempt int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.start.Key))
	_, _ = h.Write([]byte(r.plan.Steps[i].ID))
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(attempt)))
	return h.Sum64()
}

func (r *Run) applyStop(rec *Record, out *Effects) {
	if r.stop != nil {
		return
	}
	r.stop = rec.Stop
	if r.stopping { // failing fast already: what is out was asked to be decided
		return
	}
	r.stopping = true
	r.halt(rec.Time, out)
}

// halt lets nothing new start: steps that are not ready are cancelled here, those that are out need a record.
func (r *Run) halt(at time.Time, out *Effects) {
	for i := range r.steps {
		switch r.steps[i].state {
		case waiting:
			r.settle(i, cancelled, at, out)
		case ready, retrying:
			r.askDecision(i, out)
		}
	}
}

func (r *Run) cancelledError() *fault.Error {
	return fault.New(fault.Cancelled, "%s", r.cancelledMessage())
}

func (r *Run) cancelledMessage() string {
	switch {
	case r.stop != nil && r.stop.Reason == outcome.Expired:
		return "Cancelled because the run's deadline passed"
	case r.stop != nil && r.stop.By != "":
		return "Cancelled because the run was cancelled by " + r.stop.By
	case r.stop != nil:
		return "Cancelled because the run was cancelled"
	case r.failFast >= 0:
		return "Cancelled because step '" + r.plan.Steps[r.failFast].ID + "' failed and the plan says on_failure stop"
	}
	return "Cancelled"
}
