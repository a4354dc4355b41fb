package machine

import (
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// A round of an agent is cut short by a word that interrupts it, and by a call that fails with the code replan. Nothing
// more starts in it, and the next round begins with the record that decides the last of what is out: at once where that
// is nothing.

// cut is a scope of a round that was cut short, and why all is cancelled of it that is.
type cut struct {
	of  *scope
	why *fault.Error
}

// whyCut returns why a round was cut short in one of its scopes; nil where it was not.
func (a *rounds) whyCut(sc *scope) *fault.Error {
	if k := slices.IndexFunc(a.cut, func(c cut) bool { return c.of == sc }); k >= 0 {
		return a.cut[k].why
	}
	return nil
}

// cutCall is why a call is cancelled of a round that was cut short, and whether it may have happened: its planner decides whether
// it is made again. Of what was sent nobody knows by the ledger whether a worker got it: it may have waited for one.
func cutCall(r *Run, i int, why fault.Error) *fault.Error {
	switch s := &r.calls[i]; {
	case r.stepOf(i).Tool == "" || r.stepOf(i).Plan != nil || asksPlanner(r.scopeOf(i)):
	case s.state.out(), s.state == cancelled && s.result != nil:
		why.Hint = "it may have been handed out to a worker, and may have happened then: look before it is made again"
	default:
		why.Hint = "it was sent to no worker: it has not happened"
	}
	return &why
}

// interrupt gives up what is out in the round that an agent is in; a planner's answer that is not decided yet means
// nothing.
func (a *rounds) interrupt(r *Run, i int, at time.Time, out *Effects) {
	sc := a.current()
	r.ordered++
	if a.whyCut(sc) == nil {
		a.cut = append(a.cut, cut{sc, fault.New(fault.Cancelled, "Cancelled because somebody interrupted the agent '%s'", r.Token(sc.of))})
	}
	if r.calls[i].state == closing {
		a.drop(r)
		sc.shaping, r.calls[i].state = false, entered
		a.broken(r, i, sc, at, out)
		return
	}
	if sc.goesOn() {
		sc.stop(r, 0, at, out)
	}
}

// maxCutWhy is how much of why a call asks for a new plan stands in the errors of all that is cancelled for it, in bytes.
const maxCutWhy = 256

// replan cuts the innermost round short that a call stands in, which has failed because it asks for a new plan: what is
// out ends as it does. There is none to cut where the call is that of a planner, or in no round.
func replan(r *Run, i int, err *fault.Error, at time.Time, out *Effects) {
	sc := r.scopeOf(i)
	for sc.round == 0 {
		if sc.outer == nil {
			return
		}
		sc = sc.outer
	}
	a := agentAround(&r.tree, sc)
	if r.scopeOf(i) == sc && asksPlanner(sc) || sc.asksFor != nil || a.whyCut(sc) != nil {
		return
	}
	r.ordered++
	why := fault.New(fault.Cancelled, "Cancelled because '%s' asks for a new plan: %s", r.Token(r.calls[i].Call), err.Message)
	if len(err.Message) > maxCutWhy {
		why.Message = strings.ToValidUTF8(why.Message[:len(why.Message)-len(err.Message)+maxCutWhy], "") + "…"
	}
	if a.cut = append(a.cut, cut{sc, why}); !sc.stopping {
		sc.stop(r, instantOf(at), at, out)
	}
}

// broken goes on with an agent whose round was cut short. One that was not decided is none of those that count as of no
// use.
func (a *rounds) broken(r *Run, i int, sc *scope, at time.Time, out *Effects) {
	if asksPlanner(sc) && len(a.records) < int(sc.round) {
		a.records = append(a.records, &Round{Scope: sc.token, Void: true})
	}
	a.further(r, i, at, out)
}

// spared reports whether a call that has begun may go on although its scope stops. That of a planner may not, since
// nobody is to follow its answer.
func spared(r *Run, i int) bool {
	s, sc := &r.calls[i], r.scopeOf(i)
	return sc.spares != 0 && s.at <= sc.spares && !asksPlanner(sc) && sc.asksFor == nil && !(s.Item > 0 && r.calls[s.Step].halted) && !discardedAbove(&r.tree, i)
}

// abandoned reports whether a call that has begun is to be decided, and no worker is to be handed it any more.
func abandoned(r *Run, i int) bool { return r.halting(i) && !spared(r, i) }
