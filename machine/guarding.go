package machine

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// guarding is what waits until the guards of an agent let it pass: a call, its result, or what goes in and out of the agent
// itself. First conditions are asked, which follows from the records; those of calls when they are sent. Then each guard that
// is a tool is called, as a step of the round that the agent is in. What one says that asks is put to a person. Nothing of
// it is kept: it is found out of the records where they are read.
type guarding struct {
	on    string
	agent int
	of    int    // the call that waits: one of a round, or the agent
	tools bool   // all conditions have let it pass
	from  int    // the guards before it have let it pass too, of those that are conditions, or tools
	guard int    // is asked
	sc    *scope // of the call of its tool; nil while a person is asked
	// What the agent would come to, and how.
	output *Result
	as     offer
}

// offer is how an agent has come to an output.
type offer uint8

const (
	offered   offer = iota // its planner says so
	direct                 // by the result of a call
	responded              // by its last answer
)

// passesCall reports whether a call that its planner makes may begin now; otherwise it waits for a guard that is a tool.
func passesCall(r *Run, i int, at time.Time, out *Effects) bool {
	sc := guardedBy(r, i)
	if sc == nil {
		return true
	}
	of, agent := guardsOf(r, sc)
	if _, _, asks := of.Tool(plan.OnCall, 0); !asks {
		return true
	}
	r.calls[i].since = r.seq
	return (&guarding{on: plan.OnCall, agent: agent, of: i}).passes(r, at, out)
}

// passesResult reports whether a call that has succeeded has, for all that follows; otherwise its result waits, or did not
// pass and the call has failed.
func passesResult(r *Run, i int, at time.Time, out *Effects) bool {
	sc := guardedBy(r, i)
	if sc == nil || r.calls[i].result == nil {
		return true
	}
	_, agent := guardsOf(r, sc)
	return (&guarding{on: plan.OnResult, agent: agent, of: i}).passes(r, at, out)
}

// offer lets an agent come to an output that its guards let pass.
func (a *rounds) offer(r *Run, i int, res *Result, as offer, at time.Time, out *Effects) {
	g := &guarding{on: plan.OnOutput, agent: i, of: i, output: res, as: as}
	if r.stepOf(i).Agent().Guards == nil || g.passes(r, at, out) {
		a.accept(r, i, res, as, at, out)
	}
}

// seenBy is what all guards of an agent see.
func seenBy(a *rounds) map[string]json.RawMessage {
	all := map[string]json.RawMessage{"input": a.input.shown()}
	if a.entered > 0 {
		all["round"] = strconv.AppendInt(nil, int64(a.current().round-1), 10)
	}
	return all
}

// guards are those of the agent.
func (g *guarding) guards(r *Run) *plan.Agent { return r.stepOf(g.agent).Agent() }

// rounds are those of the agent.
func (g *guarding) rounds(r *Run) *rounds { return roundsOf(&r.tree, g.agent) }

// seen is what the conditions see that something waits for.
func (g *guarding) seen(r *Run) map[string]json.RawMessage {
	seen := seenBy(g.rounds(r))
	switch g.on {
	case plan.OnResult:
		seen["tool"], _ = json.Marshal(r.stepOf(g.of).Tool) // of a text
		seen["result"] = r.calls[g.of].result.Value
	case plan.OnOutput:
		seen["output"] = g.output.Value
	}
	return seen
}

// passes asks the guards that have not let something pass yet. It returns true once all have; else it waits for one of them
// or for a person, or was refused.
func (g *guarding) passes(r *Run, at time.Time, out *Effects) bool {
	of := g.guards(r).Guards
	if !g.tools && g.on != plan.OnCall {
		if no := of.Refuses(g.on, g.from, g.seen(r)); no != nil {
			g.says(r, no, at, out)
			return false
		}
	}
	if !g.tools {
		g.tools, g.from = true, 0
	}
	guard, tool, asks := of.Tool(g.on, g.from)
	if !asks {
		return true
	}
	g.guard = guard
	g.consult(r, tool, at, out)
	return false
}

// says follows a guard that does not let something pass.
func (g *guarding) says(r *Run, no *plan.Refusal, at time.Time, out *Effects) {
	if g.guard = no.Guard; no.Asks {
		g.askAbout(r, no, at, out)
		return
	}
	g.refuse(r, no, at, out)
}

// mayWait reports whether something may wait for a guard; where it is to be given up, it is.
func (g *guarding) mayWait(r *Run, at time.Time, out *Effects) bool {
	switch {
	case !r.halting(g.of) || g.spared(r):
	case g.on == plan.OnInput:
		g.rounds(r).current().stop(r, 0, at, out)
		return false
	default:
		ended(r, g.of, cancelled, at, out)
		return false
	}
	r.ordered++
	a := g.rounds(r)
	if a.waits == nil {
		a.waits = map[int]*guarding{}
	}
	a.waits[g.of] = g
	s := &r.calls[g.of]
	if g.of == g.agent {
		sc := a.current()
		s.state, sc.shaping, sc.heldBy = entered, false, g
		return true
	}
	if s.state.out() { // its worker is done
		r.scopeOf(g.of).bounded().take(-1)
	}
	s.state = guarded
	return true
}

// spared reports whether the result of a call waits in a round that was cut short, and what is out may end.
func (g *guarding) spared(r *Run) bool {
	if g.on != plan.OnResult || r.calls[g.of].Item > 0 && r.calls[r.calls[g.of].Step].halted {
		return false
	}
	for sc := r.scopeOf(g.of); ; sc = sc.outer {
		if !sc.goesOn() {
			return false
		}
		if sc.round > 0 {
			return !discardedAbove(&r.tree, g.of)
		}
	}
}

// consult calls a guard that is a tool, in the round that the agent is in.
func (g *guarding) consult(r *Run, tool int, at time.Time, out *Effects) {
	guards := g.guards(r)
	if int(r.steps)+1 > plan.MaxSteps {
		r.ordered++
		g.says(r, guards.Guards.Said(g.guard, g.tool(r), nil, tooManySteps(1)), at, out)
		return
	}
	if !g.mayWait(r, at, out) {
		return
	}
	a, all := g.rounds(r), r.stepOf(g.agent).Plan.Guards
	id := plan.GuardStep + strconv.Itoa(a.consulted*len(guards.GuardTools)+tool)
	a.consulted++
	if a.asked == len(a.guards) {
		a.guards = append(a.guards, nil)
	}
	kept := &a.guards[a.asked]
	if *kept == nil || (*kept).plan.Steps[0].ID != id || (*kept).plan.Steps[0].Tool != all.Steps[tool].Tool {
		*kept = newScopeOf(&r.tree, g.agent, &plan.Plan{
			Steps: []plan.Step{{ID: id, Tool: all.Steps[tool].Tool}}, Outputs: []int{0}, Timeout: all.Timeout, Depth: 1, Language: all.Language,
			Offset: all.Offset + tool,
		})
	}
	sc := *kept
	a.asked++
	sc.round, sc.token = a.current().round, a.current().token
	sc.asksFor, g.sc = g, sc
	sc.begin(r)
	r.steps++
	sc.open(r, at, out)
}

// tool is the one that a guard looks at a call of; empty for what goes in and out of the agent.
func (g *guarding) tool(r *Run) string {
	if g.on == plan.OnCall || g.on == plan.OnResult {
		return r.stepOf(g.of).Tool
	}
	return ""
}

// heard goes on with what waits for a guard whose call is over.
func (g *guarding) heard(r *Run, sc *scope, at time.Time, out *Effects) {
	if g.sc != sc {
		return
	}
	g.sc = nil
	a := g.rounds(r)
	if g.of == g.agent && a.current().stopping {
		release(r, a)
		a.current().leave(r, at, out)
		return
	}
	if r.halting(g.of) && !g.spared(r) {
		ended(r, g.of, cancelled, at, out)
		return
	}
	var no *plan.Refusal
	switch x := &r.calls[sc.first]; x.state {
	case notTaken: // there is nothing to be asked
	case succeeded:
		no = g.guards(r).Guards.Said(g.guard, g.tool(r), x.result.Value, nil)
	default:
		no = g.guards(r).Guards.Said(g.guard, g.tool(r), nil, r.stepError(sc.first))
	}
	if no != nil {
		g.says(r, no, at, out)
		return
	}
	g.letThrough(r, at, out)
}

// letThrough goes on with what a guard has let pass, or a person whom it asked.
func (g *guarding) letThrough(r *Run, at time.Time, out *Effects) {
	if g.from = g.guard + 1; !g.passes(r, at, out) {
		return
	}
	switch g.on {
	case plan.OnCall:
		admitted(r, g.of, at, out)
	case plan.OnResult:
		ended(r, g.of, succeeded, at, out)
	case plan.OnInput:
		a := g.rounds(r)
		release(r, a)
		a.greeted = true
		sc := a.current()
		sc.open(r, at, out)
		sc.leave(r, at, out)
	default:
		a := g.rounds(r)
		release(r, a)
		a.accept(r, g.agent, g.output, g.as, at, out)
	}
}

// refuse ends what a guard did not let pass, or a person whom it asked.
func (g *guarding) refuse(r *Run, no *plan.Refusal, at time.Time, out *Effects) {
	var ending *scope
	if (g.on == plan.OnCall || g.on == plan.OnResult) && no.Ends {
		ending = endingBy(r, guardedBy(r, g.of), g.of, no.Err)
	}
	switch s := &r.calls[g.of]; g.on {
	case plan.OnCall:
		r.fail(g.of, no.Err, at, out)
	case plan.OnResult:
		own := *s.result // the record's
		own.Error, own.Value, own.Body, own.Handle, own.Parts, own.Size = no.Err, nil, nil, nil, nil, 0
		s.result = &own
		ended(r, g.of, failed, at, out)
	case plan.OnInput:
		sc := g.rounds(r).current()
		release(r, g.rounds(r))
		sc.failure = no.Err
		sc.stop(r, 0, at, out)
	default:
		release(r, g.rounds(r))
		g.declined(r, no, at, out)
	}
	finish(r, ending, at, out)
}

// declined goes on with an agent whose output did not pass.
func (g *guarding) declined(r *Run, no *plan.Refusal, at time.Time, out *Effects) {
	a, i := g.rounds(r), g.agent
	switch {
	case no.Ends:
		r.fail(i, no.Err, at, out)
	case g.as == responded:
		a.unresponded(r, i, at, out)
	default:
		a.refused = append(a.refused, refused{len(a.records) - 1, no.Err, false})
		r.calls[i].state = entered
		a.further(r, i, at, out)
	}
}

// release lets the round that an agent is in wait for no guard any more.
func release(r *Run, a *rounds) {
	if sc := a.current(); sc != nil && sc.heldBy != nil {
		g := sc.heldBy
		sc.heldBy = nil
		if q := r.proposed[r.calls[g.of].Call]; q != nil && q.open && q.Guard != nil {
			q.open = false
			r.spend(r.nameOf(q.Call), q.Number)
		}
	}
}

// greets reports whether the input of an agent has passed its guards; else it waits for them, and its planner with it.
func greets(r *Run, i int, at time.Time, out *Effects) bool {
	a := roundsOf(&r.tree, i)
	if a.greeted || r.stepOf(i).Agent().Guards == nil {
		return true
	}
	a.greeted = (&guarding{on: plan.OnInput, agent: i, of: i}).passes(r, at, out)
	return a.greeted
}

// giveUpGuard gives up what waits for a guard that is a tool, once its call is decided.
func giveUpGuard(r *Run, i int, at time.Time, out *Effects) {
	sc := guardedBy(r, i)
	_, agent := guardsOf(r, sc)
	g := roundsOf(&r.tree, agent).waits[i]
	if g.sc != nil && !g.spared(r) && !g.sc.stopping {
		g.sc.stop(r, 0, at, out)
	}
}

// dropGuard gives up what a round waits for, and reports whether it waits for nothing any more: else the call of a guard is
// to be decided first.
func dropGuard(r *Run, sc *scope, at time.Time, out *Effects) bool {
	g := sc.heldBy
	if g == nil {
		return false
	}
	if g.sc != nil {
		if !g.sc.stopping {
			g.sc.stop(r, 0, at, out)
		}
		return false
	}
	release(r, agentAround(&r.tree, sc))
	return true
}

// Guarded is what a guard that is a tool is asked about.
type Guarded struct {
	// On is one of plan.OnInput to plan.OnOutput.
	On string
	// Of is the call that waits: one of a round, or the agent.
	Of Call
	// Value is what was returned, or would be; nil for a call and an input.
	Value *Result
}

// GuardAsked returns what a call of a guard is about; ok is false for any other call.
func GuardAsked(r *Run, c Call) (x Guarded, ok bool) {
	if c.Step < 0 || c.Item != 0 {
		return x, false
	}
	g := r.scopeOf(c.Step).place.asksFor
	if g == nil {
		return x, false
	}
	x = Guarded{On: g.on, Of: r.calls[g.of].Call, Value: g.output}
	if g.on == plan.OnResult {
		x.Value = r.calls[g.of].result
	}
	return x, true
}

// guardStep returns the step that the token of a guard's call may be of, whose round may not have come to it yet.
func guardStep(p *plan.Plan, x *subjects.Segment) *plan.Step {
	number, is := strings.CutPrefix(x.String(), plan.GuardStep)
	n, err := strconv.Atoi(number)
	if !is || err != nil || n < 0 || p == nil || p.Guards == nil {
		return nil
	}
	return &p.Guards.Steps[n%len(p.Guards.Steps)]
}

// allOf returns the scopes of an agent that are entered: of each round the call of its planner, those of its guards, and last
// what it runs.
func allOf(a *rounds) iter.Seq[*scope] {
	return func(yield func(*scope) bool) {
		guards := a.guards[:a.asked]
		before := func(round int32) bool {
			for len(guards) > 0 && guards[0].round < round {
				if !yield(guards[0]) {
					return false
				}
				guards = guards[1:]
			}
			return true
		}
		for _, sc := range a.of[:a.entered] {
			upTo := sc.round
			if !asksPlanner(sc) {
				upTo++
			}
			if !before(upTo) || !yield(sc) {
				return
			}
		}
		before(math.MaxInt32)
	}
}

// whyStopped is why the round was given up in which a guard is asked; nil where it goes on.
func whyStopped(r *Run, guard *scope) *fault.Error {
	a := agentAround(&r.tree, guard)
	switch sc := a.current(); {
	case a.whyCut(sc) != nil:
		return a.whyCut(sc)
	case sc.failure != nil:
		return fault.New(fault.Cancelled, "Cancelled because step '%s' failed: %s", r.Token(sc.of), sc.failure.Message)
	}
	return nil
}
