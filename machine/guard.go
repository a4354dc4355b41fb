package machine

import (
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// The guards of an agent look at what goes in and out of it. What conditions say follows from the records, so it is found
// out here and stands in none, but for calls that workers are handed: who sends one has its arguments, and records it as
// failed where a guard says no. Guards that are tools, and people whom guards ask, are waited for (guarding).

// refused is what a round came to, and a guard or the output schema did not let pass.
type refused struct {
	round   int
	err     *fault.Error
	invalid bool // the answer was of no use: it put forward this alone
}

// shown is an input as guards see it; nil where it can't be looked at.
func (in input) shown() json.RawMessage {
	if in.value == nil && !in.away {
		return json.RawMessage("{}") // nothing was handed in
	}
	return in.value
}

// guardedBy returns the scope of the round in which the planner of an agent with guards makes a call; nil where none does:
// the steps of a template are not its planner's.
func guardedBy(r *Run, i int) *scope {
	if s := r.stepOf(i); s.Repeat != nil || s.ForEach != nil && r.calls[i].Item == 0 {
		return nil
	}
	return plannedIn(r, i)
}

// plannedIn is guardedBy, but for what its calls are within a step: items, or iterations.
func plannedIn(r *Run, i int) *scope {
	if r.scopes == nil || len(r.scopes.agents) == 0 {
		return nil
	}
	if s := r.stepOf(i); s.Tool == "" || s.Ask {
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
	if of, _ := r.index(sc.of); sc.asksFor != nil || asksPlanner(sc) || r.stepOf(of).Agent().Guards == nil {
		return nil
	}
	return sc
}

// guardsOf returns the guards of the agent that a scope is a round of, and the agent.
func guardsOf(r *Run, sc *scope) (of plan.Guards, agent int) {
	agent, _ = r.index(sc.of)
	return r.stepOf(agent).Agent().Guards, agent
}

// asksGuards reports whether it is to be found out of a call that its planner makes whether a guard asks a person.
func asksGuards(r *Run, i int) bool {
	sc := guardedBy(r, i)
	if sc == nil {
		return false
	}
	of, _ := guardsOf(r, sc)
	return of.Asks(plan.OnCall)
}

// refusedCall is the error of a composite that its planner calls, where a guard does not let it pass. Of those that ask a
// person it was found out before whether they do.
func refusedCall(r *Run, i int, in input) (refusal *fault.Error, ending *scope) {
	if r.stepOf(i).Template == nil {
		return nil, nil
	}
	sc := guardedBy(r, i)
	if sc == nil {
		return nil, nil
	}
	of, agent := guardsOf(r, sc)
	seen := seenBy(roundsOf(&r.tree, agent))
	seen["tool"], _ = json.Marshal(r.stepOf(i).Tool) // of a text
	seen["args"] = in.shown()
	no := of.Refuses(plan.OnCall, 0, seen)
	for no != nil && no.Asks {
		no = of.Refuses(plan.OnCall, no.Guard+1, seen)
	}
	switch {
	case no == nil:
		return nil, nil
	case no.Ends:
		ending = endingBy(r, sc, i, no.Err)
	}
	return no.Err, ending
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
	if of, _ := guardsOf(r, sc); !of.Ends(res.Error) {
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
