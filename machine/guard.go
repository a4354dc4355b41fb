package machine

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// The guards of an agent look at what goes in and out of it. What they say follows from the records, so it is found out
// here and stands in none, but for calls that workers are handed: who sends one has its arguments, and records it as
// failed where a guard says no.

// refused is what a round came to, and a guard did not let pass.
type refused struct {
	round int
	err   *fault.Error
}

// seen is what all guards of an agent see.
func (a *rounds) seen() map[string]json.RawMessage {
	all := map[string]json.RawMessage{"input": a.input.shown()}
	if a.entered > 0 {
		all["round"] = strconv.AppendInt(nil, int64(a.current().round-1), 10)
	}
	return all
}

// shown is an input as guards see it; nil where it can't be looked at.
func (in input) shown() json.RawMessage {
	if in.value == nil && !in.away {
		return json.RawMessage("{}") // nothing was handed in
	}
	return in.value
}

// refuses asks the guards of an agent about its input or its output; nil is one that can't be looked at.
func (a *rounds) refuses(r *Run, i int, on string, value []byte) (err *fault.Error, ends bool) {
	of := r.stepOf(i).Agent().Guards
	if of == nil {
		return nil, false
	}
	all := a.seen()
	if on == plan.OnOutput {
		all["output"] = value
	}
	return of.Refuses(on, all)
}

// passes reports whether the guards of an agent let what it would come to pass. One that does not ends the agent, or makes
// another round follow.
func (a *rounds) passes(r *Run, i int, res *Result, at time.Time, out *Effects) bool {
	err, ends := a.refuses(r, i, plan.OnOutput, res.Value)
	switch {
	case err == nil:
		return true
	case ends:
		r.fail(i, err, at, out)
	default:
		a.refused = append(a.refused, refused{len(a.records) - 1, err})
		r.calls[i].state = entered
		a.further(r, i, at, out)
	}
	return false
}

// guardedBy returns the scope of the round in which the planner of an agent with guards makes a call; nil where none does:
// the steps of a template are not its planner's.
func guardedBy(r *Run, i int) *scope {
	s := r.stepOf(i)
	if s.Tool == "" || s.Ask || s.Repeat != nil || s.ForEach != nil && r.calls[i].Item == 0 {
		return nil
	}
	sc := r.scopeOf(i)
	for sc.round == 0 {
		above, is := r.index(sc.of)
		if sc.outer == nil || !is || r.stepOf(above).Repeat == nil && r.stepOf(above).Template != nil {
			return nil
		}
		sc = sc.outer
	}
	if of, _ := r.index(sc.of); asksPlanner(sc) || r.stepOf(of).Agent().Guards == nil {
		return nil
	}
	return sc
}

// guarded asks the guards about a call that its planner makes, or the result of one; nil is what can't be looked at.
func guarded(r *Run, i int, on, word string, value []byte) (sc *scope, err *fault.Error, ends bool) {
	if sc = guardedBy(r, i); sc == nil {
		return nil, nil, false
	}
	of, _ := r.index(sc.of)
	all := agentAround(&r.tree, sc).seen()
	all["tool"], _ = json.Marshal(r.stepOf(i).Tool) // of a text
	all[word] = value
	err, ends = r.stepOf(of).Agent().Guards.Refuses(on, all)
	return sc, err, ends
}

// judgedResult returns what becomes of a call that has succeeded: where a guard does not let its result pass, it fails. Where that
// is the end of the agent, ending is the scope of its round.
func judgedResult(r *Run, i int) (to state, ending *scope) {
	s := &r.calls[i]
	if s.result == nil {
		return succeeded, nil
	}
	sc, err, ends := guarded(r, i, plan.OnResult, "result", s.result.Value)
	if err == nil {
		return succeeded, nil
	}
	own := *s.result // the record's
	own.Error, own.Value, own.Body, own.Handle, own.Parts, own.Size = err, nil, nil, nil, nil, 0
	if s.result = &own; !ends {
		return failed, nil
	}
	return failed, endingBy(r, sc, i, err)
}

// refusedCall is the error of a composite that its planner calls, where a guard does not let it pass.
func refusedCall(r *Run, i int, in input) (refusal *fault.Error, ending *scope) {
	if r.stepOf(i).Template == nil {
		return nil, nil
	}
	sc, err, ends := guarded(r, i, plan.OnCall, "args", in.shown())
	if err != nil && ends {
		ending = endingBy(r, sc, i, err)
	}
	return err, ending
}

// refusedByOwner returns the scope of the round of an agent that ends with a call: an owner has recorded that a guard did not
// let it pass. nil for any other.
func refusedByOwner(r *Run, i int, res *Result) *scope {
	if !res.ByOwner || res.Error.Code != fault.Rejected {
		return nil
	}
	sc := guardedBy(r, i)
	if sc == nil {
		return nil
	}
	if of, _ := r.index(sc.of); !r.stepOf(of).Agent().Guards.Ends(res.Error) {
		return nil
	}
	return endingBy(r, sc, i, res.Error)
}

// endingBy lets nothing new start around a call with which its agent ends, before that call itself is over.
func endingBy(r *Run, sc *scope, i int, err *fault.Error) *scope {
	if sc.failure == nil {
		sc.failure = err
	}
	r.ordered++
	for x := r.scopeOf(i); ; x = x.outer {
		if !x.stopping {
			x.stopping, x.spares = true, 1 // until finish
		}
		if x == sc {
			return sc
		}
	}
}

// finish gives up all that goes on in the round of an agent that ends, if it is not over already. There may be none.
func finish(r *Run, sc *scope, at time.Time, out *Effects) {
	if sc == nil {
		return
	}
	if of, _ := r.index(sc.of); r.calls[of].state == entered && r.insideOf(of) == sc && sc.goesOn() {
		sc.stop(r, 0, at, out)
	}
}
