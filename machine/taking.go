package machine

import (
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Told is what an evaluation came to that had to read a blob, or took more than is done at once. It is recorded before it
// is followed, because an owner that can't read the blob must not come to another end.
type Told struct {
	Call // Step is ThePlan for the plan's output
	// Token names the call, or the composite whose output is told, where its scope may not be entered yet; its Step is
	// NotYet then.
	Token string
	// Approval says that it is about the condition of the call's contract: whether a person is asked. An error in that
	// means yes. Else it is about the condition or the value of the step, or the output of a composite or the plan.
	Approval bool
	// Number is which record of that it is, of the call, from 1; 0 is 1. Guard is the guard of an agent that has a person asked,
	// from 1; 0 for none.
	Number, Guard int
	// Output is what a composite came to, or the plan, where that is what is told; nil for all else. Apply turns its Body
	// into Value.
	Output *Result
	// Value is what the value of a step came to: its Value, Handle and Size, or its Error. It is nil for a condition.
	Value *Result
	// Until says that it is about the condition that ends a loop, and of the iteration that Token names.
	Until bool
	// Fits says that it is about whether the step's result fits the state: where Error is nil, it does.
	Fits bool
	// Holds is whether the condition is true; it counts where Error is nil.
	Holds bool
	// Error is why the condition could not be evaluated: the step fails with it.
	Error *fault.Error
}

// reached are the steps of a scope all of whose dependencies are over, in the order of its plan.
type reached struct {
	steps  []int
	next   int  // those before it were taken
	taking bool // somebody decides what becomes of them
}

// reach notes that all dependencies of a step are over.
func (sc *scope) reach(r *Run, step int) {
	q := &sc.reached
	if q.steps == nil && sc.outer != nil {
		q.steps, r.scopes.spare = r.scopes.spare, nil
	}
	at, _ := slices.BinarySearch(q.steps[q.next:], step)
	q.steps = slices.Insert(q.steps, q.next+at, step)
}

// takeReached decides what becomes of the steps of a scope that are reached, one after the other in the order of the
// plan, and of those that are reached because of that: a failure among them may stop the scope, so the order is a rule
// for all owners.
func (sc *scope) takeReached(r *Run, at time.Time, out *Effects) {
	q := &sc.reached
	if q.taking {
		return // whoever does sees these too
	}
	q.taking = true
	for q.next < len(q.steps) {
		step := q.steps[q.next]
		q.next++
		if i := sc.at(step); r.calls[i].state == waiting && r.calls[i].missing == 0 && !sc.stopping { // else it was written again since
			r.become(i, sc.verdict(r, step), at, out)
		}
	}
	*q = reached{steps: q.steps[:0]}
	if sc.outer != nil && cap(q.steps) > cap(r.scopes.spare) {
		r.scopes.spare, q.steps = q.steps, nil
	}
}

// become brings a step that waits into the state that verdict returned.
func (r *Run) become(i int, to state, at time.Time, out *Effects) {
	switch {
	case to == ready && r.stepOf(i).Value:
		r.values.derive(r, i, at, out)
	case to == ready:
		r.makeReady(i, at, out)
	case to == judging:
		r.calls[i].state = judging
		out.Judge = append(out.Judge, i)
	default:
		r.settle(i, to, at, out)
	}
}

// verdict says what becomes of a step, of a scope's plan, all of whose dependencies are over. Where its condition can't
// be evaluated it is failed, and its result says why.
func (sc *scope) verdict(r *Run, step int) state {
	s := &sc.plan.Steps[step]
	switch {
	case sc.plan.Language == 1:
		return ready // whatever spoils it has skipped it already
	case sc.standing(r).spoiler(step) != step:
		return skipped
	case sc.standing(r).lacks(s):
		return notTaken
	case s.If == nil:
		return ready
	case slices.ContainsFunc(s.If.Reads, sc.standing(r).inBlob), s.If.TakesInput && sc.input.away:
		return judging
	}
	seen := sc.look(r)
	most := r.values.work()
	left := most
	holds, err := s.If.HoldsFor(seen.resolver, &left, seen.results)
	if r.values.effort.Work -= most - left; left < 0 {
		r.ordered++
		return judging
	}
	return r.judged(sc.at(step), holds, err)
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
	if t.Token != "" {
		c, there := toldOf(r, t.Token)
		if !there {
			return // a record that nobody of ours wrote: lists and inputs that were there were read
		}
		t.Call = c
	}
	if t.Approval {
		if i, ok := r.index(t.Call); ok && r.calls[i].state == weighing && Weighs(r, t.Call).Number == max(t.Number, 1) {
			weighed(r, i, t, rec.Time, out)
		}
		return
	}
	switch {
	case t.Output != nil:
		r.applyShape(rec, out)
	case !r.isStep(t.Step):
	case t.Fits:
		if r.calls[t.Step].state == fitting {
			r.values.fitted(r, t, rec.Time, out)
		}
	case t.Until && r.Ends(t.Call):
		sc := r.scopeOf(t.Step)
		r.loopAround(sc).told(r, sc, rec, out)
	case t.Until: // it was told before, or nobody asked
	case t.Value == nil && r.calls[t.Step].state == judging:
		r.become(t.Step, r.judged(t.Step, t.Holds, t.Error), rec.Time, out)
	case t.Value != nil && r.calls[t.Step].state == deriving:
		r.values.derived(r, t.Step, t.Value, rec.Time, out)
	default: // it was decided by a record before
	}
}

// Asked is what a step waits to be told.
type Asked uint8

// What a step may wait to be told.
const (
	AskedNothing   Asked = iota
	AskedCondition       // whether its condition holds, which reads blobs
	AskedValue           // what its value comes to, which reads blobs or takes long
	AskedFit             // whether its result fits the state, which lies in a blob or takes long
	AskedUntil           // of an iteration: whether its loop is over with it, which reads blobs
)

// Asks returns what a step waits to be told.
func (r *Run) Asks(step int) Asked {
	switch s := r.calls[step].state; {
	case s == judging:
		return AskedCondition
	case s == deriving:
		return AskedValue
	case s == fitting:
		return AskedFit
	case r.Ends(Call{Step: step}):
		return AskedUntil
	}
	return AskedNothing
}

// Weighing reports whether a call waits for it to be found out whether its contract asks for an approval.
func (r *Run) Weighing(c Call) bool {
	i, ok := r.index(c)
	return ok && r.calls[i].state == weighing
}

// Fate returns how a step that is over ended, as $status and $error see it.
func (r *Run) Fate(step int) plan.Fate {
	return plan.Fate{Status: string(r.StepStatus(step)), Error: r.stepError(step)}
}
