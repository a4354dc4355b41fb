package machine

import (
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Told is what an evaluation came to that had to read a blob. It is recorded before it is followed, because an owner
// that can't read the blob must not come to another end.
type Told struct {
	Step int
	// Holds is whether the condition is true; it counts where Error is nil.
	Holds bool
	// Error is why it could not be evaluated: the step fails with it.
	Error *fault.Error
}

// standing returns how the steps stand now.
func (r *Run) standing() standing { return standing{r.plan, r.calls} }

// reached are the steps all of whose dependencies are over, in the order of the plan.
type reached struct {
	steps  []int
	taking bool // somebody decides what becomes of them
}

func (q *reached) add(i int) {
	at, _ := slices.BinarySearch(q.steps, i)
	q.steps = slices.Insert(q.steps, at, i)
}

// take decides what becomes of them, one after the other in the order of the plan, and of those that are reached because
// of that: a failure among them may stop the run, so the order is a rule for all owners.
func (q *reached) take(r *Run, at time.Time, out *Effects) {
	if q.taking {
		return // whoever does sees these too
	}
	q.taking = true
	for len(q.steps) > 0 {
		i := q.steps[0]
		q.steps = q.steps[1:]
		if r.calls[i].state == waiting && !r.stopping {
			r.become(i, r.verdict(i), at, out)
		}
	}
	q.taking = false
}

// become brings a step that waits into the state that verdict returned.
func (r *Run) become(i int, to state, at time.Time, out *Effects) {
	switch to {
	case ready:
		r.makeReady(i, at, out)
	case judging:
		r.calls[i].state = judging
		out.Judge = append(out.Judge, i)
	default:
		r.settle(i, to, at, out)
	}
}

// verdict says what becomes of a step all of whose dependencies are over. Where its condition can't be evaluated it is
// failed, and its result says why.
func (r *Run) verdict(i int) state {
	s := &r.plan.Steps[i]
	switch {
	case r.plan.Language == 1:
		return ready // whatever spoils it has skipped it already
	case r.standing().spoiler(i) != i:
		return skipped
	case r.standing().lacks(s):
		return notTaken
	case s.If == nil:
		return ready
	case r.standing().inBlobs(s.If):
		return judging
	}
	holds, err := s.If.Holds(r.plan, r.seen, r.Fate)
	return r.judged(i, holds, err)
}

// judged returns the state that a condition brings its step into.
func (r *Run) judged(i int, holds bool, err *fault.Error) state {
	switch {
	case err != nil:
		r.calls[i].result = &Result{Call: r.calls[i].Call, Attempt: 1, ByOwner: true, Error: err}
		return failed
	case holds:
		return ready
	}
	return notTaken
}

// applyTold takes the record of an evaluation. One for a step that doesn't wait for it says nothing new.
func (r *Run) applyTold(rec *Record, out *Effects) {
	t := rec.Told
	if t.Step < 0 || t.Step >= len(r.plan.Steps) || r.calls[t.Step].state != judging {
		return
	}
	r.become(t.Step, r.judged(t.Step, t.Holds, t.Error), rec.Time, out)
}

// Judging reports whether a step waits for its condition to be read.
func (r *Run) Judging(step int) bool { return r.calls[step].state == judging }

// Fate returns how a step that is over ended, as $status and $error see it.
func (r *Run) Fate(step int) plan.Fate {
	return plan.Fate{Status: string(r.StepStatus(step)), Error: r.stepError(step)}
}

// seen returns what a condition sees of a step's result, which lies in no blob.
func (r *Run) seen(step int) (json []byte, ok bool) {
	if r.Result(Call{Step: step}) == nil {
		return nil, false
	}
	if r.calls[step].items == nil {
		return r.calls[step].result.Value, true
	}
	if r.entries == nil {
		r.entries = map[int][]byte{}
	}
	if r.entries[step] == nil { // every condition that refers to the list shares it
		r.entries[step] = r.Value(step)
	}
	return r.entries[step], true
}

// stops reports whether the failure of a step stops the run: the plan says so, and no step deals with it.
func (r *Run) stops(i int) bool {
	s := &r.plan.Steps[i]
	return r.plan.OnFailure == plan.Stop && !s.Optional && !s.Regarded && !r.stopping
}
