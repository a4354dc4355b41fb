package machine

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// RoundView is a round of an agent as far as it has come.
type RoundView struct {
	// Number counts from 0.
	Number int
	// Elapsed is how long the agent had run when the round began; 0 while that is not known.
	Elapsed time.Duration
	// Planner is the call of its planner, Answer what that returned; nil while it is not over, or where it failed.
	Planner Call
	Answer  *Result
	// Summary is what was made of the oldest rounds before the planner was asked; nil for nothing. Summarised says that
	// somebody was asked to.
	Summary    *Result
	Summarised bool
	// Begun says that its planner was asked: one whose input does not pass, or that is interrupted before, is not.
	Begun bool
	// Guards are the calls of guards in it that have succeeded, in the order in which they were asked for.
	Guards []GuardView
	// Record is what was decided of it; nil as long as nothing is.
	Record *Round
	// Plan is what runs, and Numbers those of its steps; nil for nothing.
	Plan    *plan.Plan
	Numbers Numbers
	// HandedOver is what its planner has handed over before its answer was whole, and HandedNumbers those of its steps; nil where its
	// agent lets nothing begin so.
	HandedOver    *plan.Plan
	HandedNumbers Numbers
	// Refused is why what the round came to is not what the agent comes to: its output schema, or a guard, does not let it
	// pass; nil where none said no.
	Refused *fault.Error
	// Final says that the planner is asked for a last answer.
	Final bool
}

// GuardView is a call of a guard that is a tool, and has answered.
type GuardView struct {
	// On is what it looked at: one of plan.OnInput to plan.OnOutput.
	On string
	// Tool is the guard's.
	Tool string
	// Said is what it returned.
	Said *Result
}

// RoundCount returns how many rounds of an agent were begun.
func RoundCount(r *Run, agent Call) int {
	a := agentAt(&r.tree, agent)
	if a == nil || a.entered == 0 {
		return 0
	}
	return int(a.of[a.entered-1].round)
}

// Rounds returns the rounds of an agent that were begun, from one on; none of any other call. What it takes does not grow
// with those before.
func Rounds(r *Run, agent Call, from int) (list []RoundView) {
	a := agentAt(&r.tree, agent)
	if a == nil {
		return nil
	}
	first := a.entered
	for first > 0 && int(a.of[first-1].round) > from {
		first--
	}
	for _, sc := range a.of[first:a.entered] {
		if asksPlanner(sc) {
			v := RoundView{Number: int(sc.round) - 1, Planner: Call{Step: sc.first}, Answer: r.Result(Call{Step: sc.first})}
			v.Elapsed, v.Begun = elapsed(r, agent, sc), r.calls[sc.first].attempt > 0
			if handed := begunIn(r, sc); handed != nil {
				v.HandedOver, v.HandedNumbers = handed.plan, handed.numbers()
			}
			if summarises(sc) {
				state := r.calls[sc.at(1)].state
				v.Summary, v.Summarised = r.Result(Call{Step: sc.at(1)}), state.terminal() && state != notTaken
			}
			list = append(list, v)
			continue
		}
		last := &list[len(list)-1]
		last.Plan, last.Numbers = sc.plan, sc.numbers()
	}
	guardViews(r, a, from, list)
	if asks := a.current(); a.ending != nil && asksPlanner(asks) && len(list) > 0 {
		list[len(list)-1].Final = true
	}
	for _, x := range a.refused {
		if x.round >= from {
			list[x.round-from].Refused = x.err
		}
	}
	for i := range list {
		if n := from + i; n < len(a.records) && !a.records[n].Void {
			list[i].Record = a.records[n]
		}
	}
	return list
}

// Ended returns the calls of the round of an agent that runs which are over, at any depth but for the rounds of other agents,
// in the order in which they came to be. It is added to, and nothing else, as long as the state was not computed anew, which
// anew counts. It must not be changed.
func Ended(r *Run, agent Call) (calls []Call, anew int) {
	a := agentAt(&r.tree, agent)
	if a == nil {
		return nil, int(r.anew)
	}
	return a.terminal, int(r.anew)
}

// guardViews adds the guards of rounds, from one on, that have answered.
func guardViews(r *Run, a *rounds, from int, list []RoundView) {
	first := a.asked
	for first > 0 && int(a.guards[first-1].round) > from {
		first--
	}
	for _, sc := range a.guards[first:a.asked] {
		if said := r.Result(Call{Step: sc.first}); said != nil {
			of := &list[int(sc.round)-1-from]
			of.Guards = append(of.Guards, GuardView{sc.asksFor.on, sc.plan.Steps[0].Tool, said})
		}
	}
}

// elapsed is how long an agent had run when the first call of a round was ready.
func elapsed(r *Run, agent Call, sc *scope) time.Duration {
	i, _ := r.index(agent)
	begun, first := r.calls[i].ready, r.calls[sc.first].ready
	if summarises(sc) && r.calls[sc.at(1)].ready != 0 {
		first = r.calls[sc.at(1)].ready // of the summary before
	}
	if begun == 0 || first == 0 {
		return 0
	}
	return max(first.time().Sub(begun.time()), 0)
}

// Responds reports whether an agent's planner is asked for its last answer.
func Responds(r *Run, agent Call) bool {
	a := agentAt(&r.tree, agent)
	return a != nil && a.ending != nil
}

// RoundAround returns the innermost agent in a round of which a call stands, and the number of the round; ok is false for
// a call that stands in none. own is whether it is the call of the planner.
func RoundAround(r *Run, c Call) (agent Call, round int, own, ok bool) {
	for sc := r.scopeOf(c.Step); sc.outer != nil; sc = sc.outer {
		if sc.round > 0 {
			return sc.of, int(sc.round) - 1, asksPlanner(sc) && c.Step == sc.first, true
		}
	}
	return Call{}, 0, false, false
}

// Summary reports whether a call is that of a summary of the oldest rounds, before a round of an agent calls its planner.
func Summary(r *Run, c Call) bool { return summary(r, c) }

// RoundScope returns the token of the round of an agent that waits for its record; ok is false where none does.
func RoundScope(r *Run, agent Call) (token string, ok bool) {
	sc := r.inside(agent)
	if sc == nil || sc.round == 0 {
		return "", false
	}
	_, ok = waitsForRound(r, sc.token)
	return sc.token, ok
}

// ShapingToken returns the token by which the record of what a composite, or a round of an agent, comes to goes.
func ShapingToken(r *Run, of Call) string {
	if sc := r.inside(of); sc != nil && sc.round > 0 {
		return sc.token
	}
	return r.Token(of)
}

// BegunAt returns the sequence of the record with which a call began; 0 for one that has not, since a person or a guard is
// asked before, or never did, and where that was the start of the run.
func BegunAt(r *Run, c Call) uint64 {
	i, ok := r.index(c)
	if !ok || r.calls[i].attempt == 0 {
		return 0
	}
	return r.calls[i].since
}

// ReadySince returns the sequence of the record that made a call ready; 0 where that was the start of the run.
func ReadySince(r *Run, c Call) uint64 {
	i, ok := r.index(c)
	if !ok {
		return 0
	}
	return r.calls[i].since
}
