package machine

import (
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// A planner may hand over steps of its answer before that is whole, where its agent says so. They stand in a scope of their
// own beside its call, which is empty and open when the round begins: each handing over is an amendment of it. One counts
// only where the attempt is out that it names, and only from who has claimed that attempt. The planner's record closes the
// scope. An attempt that ends without an answer lets nothing more of it start; the next one goes on in the same scope, and
// what has begun stays. The round is decided once all of that is over, and its steps that have begun come to what they came
// to there.

// Claim is the record by which a worker claims an attempt of a planner's call, before it hands over the first step.
type Claim struct {
	// Token names the call.
	Token   string
	Attempt int
	Nonce   string
}

// Streamed names the attempt by which a planner hands over steps, and who has claimed it.
type Streamed struct {
	Attempt int
	Nonce   string
}

// claim is the one that counts of an agent's round.
type claim struct {
	attempt int
	nonce   string
}

// takeClaim takes the claim of a planner's attempt. One of any other attempt than that which is out says nothing.
func takeClaim(r *Run, c *Claim) {
	of, there := r.Find(c.Token)
	i, ok := r.index(of)
	if !there || !ok || c.Nonce == "" {
		return
	}
	sc, s := r.scopeOf(i), &r.calls[i]
	if begunIn(r, sc) == nil || i != sc.first || !s.state.out() || int(s.attempt) != c.Attempt {
		return
	}
	if a := agentAround(&r.tree, sc); a.claim.attempt != c.Attempt {
		a.claim = claim{c.Attempt, c.Nonce}
	}
}

// isBegun reports whether a scope is that of what a planner has begun.
func isBegun(sc *scope) bool {
	around := sc.outer
	return around != nil && sc.round == 0 && around.round > 0 && around.plan.Steps[around.numberOf(sc.of.Step)].ID == plan.StreamStep
}

// begunIn returns the scope of what a planner has begun whose call stands in a scope; nil where its agent lets nothing begin
// so.
func begunIn(r *Run, sc *scope) *scope {
	if sc.round == 0 || !asksPlanner(sc) {
		return nil
	}
	last := len(sc.plan.Steps) - 1
	if sc.plan.Steps[last].ID != plan.StreamStep {
		return nil
	}
	return r.insideOf(sc.at(last))
}

// agentOf returns the rounds of the agent in a round of which a scope is amended.
func agentOf(t *tree, sc *scope) *rounds {
	if isBegun(sc) {
		sc = sc.outer
	}
	return agentAround(t, sc)
}

// unstreamed says why nothing can be added to what a planner has begun; nil where it can.
func (x *amending) unstreamed() *fault.Error {
	if !isBegun(x.sc) {
		return fault.New(fault.NotAmendable, "the plan of %s is not one that a planner adds to while it writes", shownScope(x.sc)).
			WithHint("amend it without naming an attempt")
	}
	if x.a.Streamed == nil {
		return fault.New(fault.NotAmendable, "the plan of %s is what a planner has begun, and its own to add to", shownScope(x.sc)).
			WithHint("amend the round %s, once its planner has answered", x.sc.outer.token)
	}
	planner, a := &x.calls[x.sc.outer.first], agentOf(&x.tree, x.sc)
	if !planner.state.out() || int(planner.attempt) != x.a.Streamed.Attempt {
		return fault.New(fault.AlreadyFinished, "attempt %d of the planner is not out any more", x.a.Streamed.Attempt).
			WithHint("stop handing over steps: what comes of this attempt counts for nothing")
	}
	if a.claim != (claim{x.a.Streamed.Attempt, x.a.Streamed.Nonce}) {
		return fault.New(fault.Permission, "attempt %d of the planner is not claimed by who hands over its steps", x.a.Streamed.Attempt).
			WithHint("create the claim before the first step is handed over")
	}
	return nil
}

// attemptOver lets nothing more start of what a planner has begun, whose attempt has ended without an answer. What has begun
// goes on. Of any other call it does nothing.
func attemptOver(r *Run, i int, at time.Time, out *Effects) {
	sc := r.scopeOf(i)
	if sc.round == 0 || i != sc.first {
		return
	}
	begun := begunIn(r, sc)
	if begun == nil || begun.amended == nil || begun.stopping {
		return
	}
	r.ordered++
	agentAround(&r.tree, sc).endedAt = r.seq
	now := begun.amended
	now.changing, begun.reached.taking = true, true
	for n := range begun.plan.Steps {
		s := &r.calls[begun.at(n)]
		if s.attempt > 0 || s.state == succeeded { // what stands for an earlier round never began, and stays
			continue
		}
		if s.discarded = discardedWaiting; !s.state.terminal() { // else what it waited for failed, or its condition was not met
			r.settle(begun.at(n), cancelled, at, out)
		}
	}
	now.changing, begun.reached.taking = false, false
	begun.takeReached(r, at, out)
}

// plannerOver closes the scope of what a planner has begun whose call is over.
func plannerOver(r *Run, sc *scope, at time.Time, out *Effects) {
	begun := begunIn(r, sc)
	if begun == nil || begun.stopping {
		return
	}
	begun.amend().closed = true
	begun.leave(r, at, out)
}

// notBegun is why a step is cancelled that had not begun when its planner's attempt ended.
func notBegun() *fault.Error {
	return fault.New(fault.Cancelled, "Cancelled because its planner's attempt ended before it had begun")
}

// takesBegun decides a step of a round that has begun before the answer was whole: it comes to what it has come to there.
func takesBegun(a *rounds, r *Run, sc *scope, i int, id string, d *Round, at time.Time, out *Effects) bool {
	if !slices.Contains(d.Begun, id) {
		return false
	}
	begun := begunBefore(a, r, int(sc.round))
	if begun == nil {
		return false
	}
	n, known := begun.plan.Index(id)
	if !known {
		return false
	}
	from := &r.calls[begun.at(n)]
	r.calls[i].result = from.result
	r.settle(i, from.state, at, out)
	return true
}

// begunBefore returns the scope of what the planner of a round has begun, counted from 1; nil for nothing.
func begunBefore(a *rounds, r *Run, round int) *scope {
	for _, sc := range a.of[:a.entered] {
		if int(sc.round) == round && asksPlanner(sc) {
			return begunIn(r, sc)
		}
	}
	return nil
}

// ran returns the scope of what ran in a round, counted from 0: of one that was not decided, what had begun. nil for nothing.
func ran(a *rounds, r *Run, round int) *scope {
	for _, sc := range a.of[:a.entered] {
		if int(sc.round) == round+1 && !asksPlanner(sc) {
			return sc
		}
	}
	return begunBefore(a, r, round+1)
}

// begunAs returns the call whose records a call of a round has its result from: another one where it had begun before the
// answer was whole.
func begunAs(r *Run, i int) int {
	if res := r.calls[i].result; res != nil && res.Item == 0 && r.isStep(res.Step) && res.Step != i && res.Parts == nil && r.calls[res.Step].result == res {
		return res.Step
	}
	return i
}

// EndedAt returns the sequence of the record that ended the last attempt of a planner which had begun something, in the round
// that its agent is in; 0 for none.
func EndedAt(r *Run, agent Call) uint64 {
	if a := agentAt(&r.tree, agent); a != nil {
		return a.endedAt
	}
	return 0
}

// StreamNamed returns the agent whose planner hands over steps to a scope, by its token; ok is false for any other.
func StreamNamed(r *Run, token string) (agent Call, ok bool) {
	sc := scopeNamed(&r.tree, token)
	if sc == nil || !isBegun(sc) {
		return Call{}, false
	}
	return sc.outer.of, true
}

// Claimed reports whether somebody has claimed the attempt of a planner's call, so that it may hand over steps.
func Claimed(r *Run, planner Call, attempt int) bool {
	i, ok := r.index(planner)
	if !ok || begunIn(r, r.scopeOf(i)) == nil {
		return false
	}
	return agentAround(&r.tree, r.scopeOf(i)).claim.attempt == attempt
}

// Streams returns the scope to which the planner of a call hands over steps before its answer is whole, and the attempt that
// may; ok is false where none may: for any other call, and where the agent asks for a last answer.
func Streams(r *Run, planner Call) (scope string, attempt int, ok bool) {
	i, there := r.index(planner)
	if !there {
		return "", 0, false
	}
	sc := r.scopeOf(i)
	begun := begunIn(r, sc)
	if begun == nil || i != sc.first || begun.stopping || !r.calls[i].state.out() || agentAround(&r.tree, sc).ending != nil {
		return "", 0, false
	}
	return begun.token, int(r.calls[i].attempt), true
}
