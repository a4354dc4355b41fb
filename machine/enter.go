package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// input is what a composite hands to its scope.
type input struct {
	value []byte
	// away says that the shell has it: it is made of what lies in blobs, or larger than MaxDerived.
	away bool
	gone bool // nobody in the scope refers to it any more
}

// enter opens the scope of a composite whose inputs are there. Nothing is recorded of that: it follows.
func (r *Run) enter(i int, at time.Time, out *Effects) {
	r.calls[i].state = entered // it takes no room
	// A record that came early says that it took too long; one of a success is none that anybody of ours wrote. It stands where
	// it would be recorded that the input can't be read, so the composite fails of it then: nobody can say why.
	if rec := r.waited(r.calls[i].Call, 1); rec != nil && (rec.Result.Error != nil || r.scopes.isLost(r.calls[i].Call)) {
		if r.calls[i].result = rec.Result; rec.Result.Error == nil {
			r.calls[i].result = &Result{Call: r.calls[i].Call, Attempt: 1, ByOwner: true,
				Error: fault.New(fault.ToolTerminal, "its input can't be read, and a composite has no result of its own, as its record says")}
		}
		r.end(i, failed, rec.Time, out)
		return
	}
	if r.stepOf(i).Repeat != nil {
		r.loopOf(i).iterate(r, i, at, out)
		return
	}
	in, err := r.inputFor(i)
	if err == nil && in.away && !r.nested().readable[r.calls[i].Call] {
		r.calls[i].state = expanding
		r.uncounted++
		out.Enter = append(out.Enter, r.calls[i].Call)
		return
	}
	r.enterWith(i, in, err, at, out)
}

// Enter tells that the input of a composite can be read, which is made of what lies in blobs. Where it can't, the
// composite's own first attempt is decided with the reason. That it can follows from the plan and the results of its
// dependencies, so that the same counts here as of Expand.
func (r *Run) Enter(c Call, now time.Time, out *Effects) {
	s := r.nested()
	if s.readable == nil {
		s.readable = map[Call]bool{}
	}
	s.readable[c], r.now = true, now
	if !r.Entering(c) || r.kept.missing {
		return
	}
	i, _ := r.index(c)
	if r.belated(i) {
		r.replay(now, out)
		return
	}
	r.join(i, now, out, func(at time.Time) {
		r.uncounted--
		r.enterWith(i, input{away: true}, nil, at, out)
	})
}

// Entering reports whether a composite waits for its input to be read.
func (r *Run) Entering(c Call) bool {
	i, ok := r.index(c)
	return ok && r.calls[i].state == expanding && r.isComposite(i)
}

// enterWith opens the scope of a composite with its input, or fails it.
func (r *Run) enterWith(i int, in input, err *fault.Error, at time.Time, out *Effects) {
	r.calls[i].state = entered
	steps := len(r.stepOf(i).Plan.Steps)
	if err == nil && int(r.steps)+steps > plan.MaxSteps {
		r.ordered++
		err = tooManySteps(steps)
	}
	var ending *scope
	if err == nil {
		err, ending = refusedCall(r, i, in)
	}
	if err != nil {
		r.fail(i, err, at, out)
		finish(r, ending, at, out)
		return
	}
	if r.stepOf(i).Agent() != nil {
		roundsOf(&r.tree, i).begin(r, i, in, at, out)
		return
	}
	sc := r.placeFor(i)
	sc.begin(r)
	sc.input = in
	r.steps += int32(steps)
	sc.reuseWithin(r, at)
	if r.calls[i].expiring {
		r.askDecision(i, out)
	}
	sc.open(r, at, out)
	sc.leave(r, at, out)
}

func tooManySteps(n int) *fault.Error {
	return fault.New(fault.LimitExceeded, "its plan has %d steps, and with them the run would have more than %d", n, plan.MaxSteps).
		WithHint("run the parts as plans of their own, or shorten the list")
}

// fail ends a call with an error that follows from what is known.
func (r *Run) fail(i int, err *fault.Error, at time.Time, out *Effects) {
	r.calls[i].result = &Result{Call: r.calls[i].Call, Attempt: 1, ByOwner: true, Error: err}
	r.end(i, failed, at, out)
}

// inputFor resolves the arguments of a composite, or takes those that its approval came with.
func (r *Run) inputFor(i int) (input, *fault.Error) {
	if edited := r.Arguments(r.calls[i].Call); edited != nil {
		value, err := plan.Output(edited, false)
		if err == nil {
			err = r.stepOf(i).Template.Takes(value, nil)
		}
		return input{value: value}, err
	}
	at, turn := r.originOf(i)
	sc, step := at.scope, at.step
	s := &sc.plan.Steps[step]
	if s.HasRefs && (slices.ContainsFunc(s.Deps, sc.standing(r).inBlob) || s.TakesInput && sc.input.away || s.TakesLast && turn.inBlob()) {
		return input{away: true}, nil
	}
	seen := sc.look(r).in(turn)
	seen.resolver.Limit(MaxDerived)
	var value []byte
	var err *fault.Error
	if item := r.element(at.of); item != nil {
		value, err = seen.resolver.ItemArguments(step, item, seen.results)
	} else {
		value, err = seen.resolver.Arguments(step, seen.results)
	}
	switch {
	case err != nil && err.Code == fault.TooLarge:
		return input{away: true}, nil // of what is too large altogether whoever needs it says so
	case err == nil && s.HasRefs: // what is constant was judged before the run began
		err = r.stepOf(i).Template.Takes(value, func(place string) string {
			return seen.resolver.Explain(step, r.element(at.of), place, seen.results)
		})
	}
	return input{value: value}, err
}

// leave settles the composite of a scope whose steps are all over.
func (sc *scope) leave(r *Run, at time.Time, out *Effects) {
	if sc.outer == nil || !sc.over() {
		return
	}
	dropProposal(sc)
	i, _ := r.index(sc.of)
	if sc.asksFor != nil {
		sc.asksFor.heard(r, sc, at, out)
		return
	}
	if r.calls[i].state != entered || sc.round > 0 && r.insideOf(i) != sc { // it was left before
		return
	}
	switch {
	case r.halting(i) && sc.standing(r).interrupted():
		r.end(i, cancelled, at, out)
	case sc.failure != nil:
		r.fail(i, sc.failure, at, out)
	case sc.iteration > 0:
		r.loopAround(sc).iterated(r, i, sc, at, out)
	case sc.round > 0:
		agentAround(&r.tree, sc).left(r, i, sc, at, out)
	case isBegun(sc):
		r.endWith(i, &Result{Call: sc.of, Attempt: 1, ByOwner: true, Value: []byte("null"), Size: int64(len("null"))}, at, out)
	case !sc.good(r):
		r.fail(i, sc.subPlanFailed(r), at, out)
	default:
		r.comeTo(i, sc, at, out)
	}
}

// good reports whether what a scope came to is a success of its composite.
func (sc *scope) good(r *Run) bool {
	if !sc.standing(r).bad() {
		return true
	}
	i, _ := r.index(sc.of)
	return r.stepOf(i).Partial && sc.anyOutput(r)
}

// comeTo ends a composite with its output, or lets a record tell that.
func (r *Run) comeTo(i int, sc *scope, at time.Time, out *Effects) {
	sc.output = sc.derived(r)
	switch {
	case sc.output != nil:
		r.endWith(i, sc.output, at, out)
	case r.halting(i):
		r.end(i, cancelled, at, out)
	default:
		sc.shaping, r.calls[i].state = true, closing
		r.askToClose(i, out)
	}
}

// endWith ends a composite with what its scope came to.
func (r *Run) endWith(i int, x *Result, at time.Time, out *Effects) {
	r.calls[i].result = x
	r.kept.holds(x)
	if x.Error != nil {
		r.end(i, failed, at, out)
		return
	}
	r.end(i, succeeded, at, out)
}

// maxSubErrors is the most errors of its steps that the failure of a composite names.
const maxSubErrors = 20

// subPlanFailed is what a composite fails with whose steps did not come to the end that its plan hoped for.
func (sc *scope) subPlanFailed(r *Run) *fault.Error {
	type stepError struct {
		Step    string     `json:"step"`
		Code    fault.Code `json:"code"`
		Message string     `json:"message"`
	}
	excused := sc.standing(r).excused()
	var list []stepError
	count := 0
	for n := range sc.plan.Steps {
		err := r.stepError(sc.at(n))
		if err == nil || sc.plan.Steps[n].Optional || excused[n] || r.calls[sc.at(n)].discarded != notDiscarded {
			continue
		}
		if count++; count <= maxSubErrors {
			list = append(list, stepError{sc.plan.Steps[n].ID, err.Code, err.Message})
		}
	}
	err := fault.New(fault.SubPlanFailed, "the plan of the step failed")
	if count > 0 {
		err.Message = fmt.Sprintf("%d of the %d steps of its plan did not succeed: '%s': %s", count, len(sc.plan.Steps), list[0].Step, list[0].Message)
	}
	err.Retryable = false
	err.Details, _ = json.Marshal(struct {
		Errors []stepError `json:"errors"`
	}{list}) // of strings alone
	return err
}
