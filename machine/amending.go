package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// reading is an amendment as read for a plan, behind so many steps. All of them are kept: while a state is computed anew an
// amendment may be read where it does not count yet, and again where it does. Were it read anew each time, what it adds would
// be entered in other places each time, and all that is asked for of those would be asked for without end.
type reading struct {
	*plan.Amended
	base   *plan.Plan
	offset int
	below  []int32 // of what is written again: call.below of what it is not now, the step before or the one after
}

// amending is the amendment of a scope.
type amending struct {
	*Run
	sc *scope
	a  *Amendment
}

// giveBack lets the steps have their places that were written again.
func (x *amending) giveBack() {
	r := x.a.inForce
	for k, n := range r.Added {
		if n < len(r.base.Steps) {
			at := &x.calls[x.sc.at(n)].below
			*at, r.below[k] = r.below[k], *at
		}
	}
}

// isStale lets an amendment do nothing. Its number is used up.
func (x *amending) isStale(why *fault.Error, out *Effects) {
	x.a.stale, x.a.steps = why, len(x.sc.plan.Steps)
	x.sc.askClose(x.Run, out)
}

// apply does what an amendment says, which is in force.
func (x *amending) apply(added *reading, at time.Time, out *Effects) {
	sc, now := x.sc, x.sc.amended
	x.a.steps = len(added.Plan.Steps)
	now.changing = true
	sc.reached.taking = true // nobody is taken before all that is added is there
	x.discardAll(at, out)
	x.add(added, at, out)
	now.closed = now.closed || x.a.Close
	now.changing, sc.reached.taking = false, false
	sc.keepOpen(x.Run, at)
	sc.takeReached(x.Run, at, out)
	sc.leave(x.Run, at, out)
}

// placeAdded finds a place among the calls for what an amendment adds, whatever becomes of that. It keeps it when the
// state is computed anew.
func (x *amending) placeAdded() {
	a := x.a
	if a.placed {
		return
	}
	a.placed, a.first = true, len(x.calls)
	x.calls = slices.Grow(x.calls, len(a.Add))[:a.first+len(a.Add)]
	for i := range a.Add {
		a.ids = append(a.ids, idOf(a.Add[i]))
		x.calls[a.first+i].scope = x.sc.number
	}
}

// idOf returns the id of a step as it stands in a plan; empty for what has none.
func idOf(step json.RawMessage) string {
	var s struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(step, &s) != nil {
		return ""
	}
	return s.ID
}

// reads reads an amendment where its record stands. The error says why it is stale.
func (x *amending) reads() (*reading, *fault.Error) {
	if err := x.unapproved(); err != nil {
		return nil, err
	}
	if len(x.list) > MaxAmendments && !x.a.only() {
		return nil, tooManyAmendments()
	}
	return x.inForce()
}

// inForce reads an amendment as it would count here. The error says why it would be stale.
func (x *amending) inForce() (*reading, *fault.Error) {
	if err := x.unamendable(); err != nil {
		return nil, err
	}
	if err := x.stale(); err != nil {
		return nil, err
	}
	added, err := x.read()
	if err != nil {
		return nil, err
	}
	if n := len(added.Plan.Steps) - len(x.sc.plan.Steps); int(x.steps)+n > plan.MaxSteps {
		return nil, fault.New(fault.LimitExceeded, "with %d more steps the run would have more than %d", n, plan.MaxSteps).
			WithHint("run the parts as plans of their own")
	}
	return added, nil
}

// read returns the plan of the scope with what the amendment adds.
func (x *amending) read() (*reading, *fault.Error) {
	sc, a, offset := x.sc, x.a, len(x.contracts)
	k := slices.IndexFunc(a.readings, func(r *reading) bool { return r.base == sc.plan && r.offset == offset })
	if k < 0 {
		addition := x.addition()
		addition.Templates = x.templates()
		added, report := sc.plan.Amend(addition, nil)
		if added == nil {
			p := report.Problems[0]
			return nil, fault.New(p.Code, "%s: %s", p.Path, p.Message).WithHint("%s", p.Hint)
		}
		how := x.admitted()
		for i := 0; how != nil && i < len(added.Added); i++ {
			how.Name(&added.Plan.Steps[added.Added[i]])
		}
		k = len(a.readings)
		a.readings = append(a.readings, &reading{added, sc.plan, offset, make([]int32, len(added.Added))}) // nothing of it has a place yet
	}
	added := a.readings[k]
	for _, i := range added.Added {
		for _, d := range added.Plan.Steps[i].Deps {
			if d < len(sc.plan.Steps) && x.gone(d) && !slices.Contains(added.Added, d) {
				return nil, fault.New(fault.UnknownRef, "the step %q refers to %q, which was discarded", added.Plan.Steps[i].ID, added.Plan.Steps[d].ID).
					WithHint("refer to another step, or add it again under another id")
			}
		}
	}
	return added, nil
}

// addition is the amendment as the plan takes it.
func (x *amending) addition() *plan.Amendment {
	p := &plan.Amendment{
		Add: x.a.Add, Output: x.a.Output, OutputSteps: x.a.OutputSteps, Scope: x.sc.token, Offset: len(x.contracts), Again: x.mayBeAgain, Round: x.sc.round > 0 || isBegun(x.sc),
	}
	how := x.admitted()
	for i := 0; how != nil && i < len(p.Add); i++ {
		p.After = append(p.After, how.After[idOf(p.Add[i])])
	}
	return p
}

// templates returns those that the added steps may call. Those that the run has already go before those of the amendment.
func (x *amending) templates() map[string]*plan.Template {
	if how := x.admitted(); how != nil {
		return how.Templates
	}
	known := x.used(&x.tree)
	if len(x.a.Templates) == 0 {
		return known.templates
	}
	all := maps.Clone(known.templates)
	for name, t := range x.a.Templates {
		if known.contracts[name] == nil {
			all[name] = t
		}
	}
	return all
}

// mayBeAgain reports whether a step may be written again: the amendment discards it, and nothing has come of it.
func (x *amending) mayBeAgain(step int) bool {
	c := &x.calls[x.sc.at(step)]
	return x.a.discards(x.sc.plan.Steps[step].ID) && c.state == waiting && c.discarded == notDiscarded
}

// gone reports whether nothing may refer to a step: it was discarded before it was over, or is with the amendment.
func (x *amending) gone(step int) bool {
	c := &x.calls[x.sc.at(step)]
	if c.discarded > discardedOver {
		return true
	}
	return !c.state.terminal() && x.a.discards(x.sc.plan.Steps[step].ID)
}

// discardAll takes steps out of the plan, but those that are written again.
func (x *amending) discardAll(at time.Time, out *Effects) {
	sc, a := x.sc, x.a
	if a.Rest {
		for n := range sc.plan.Steps {
			if i := sc.at(n); !x.calls[i].state.terminal() && !slices.Contains(a.ids, sc.plan.Steps[n].ID) {
				x.discard(i, at, out)
			}
		}
	}
	for _, id := range a.Discard {
		if n, known := sc.plan.Index(id); known && !slices.Contains(a.ids, id) {
			x.discard(sc.at(n), at, out)
		}
	}
}

// discard gives a step up. What waits is gone; of what is out a record decides.
func (x *amending) discard(i int, at time.Time, out *Effects) {
	s := &x.calls[i]
	switch {
	case s.discarded != notDiscarded:
		return
	case s.state.terminal():
		s.discarded = discardedOver
		return
	case s.state == expanding || s.state == spread || s.state == entered || s.state.out() || s.state == closing || s.state == fitting || s.attempt > 0:
		s.discarded = discardedOut
	default:
		s.discarded = discardedWaiting
	}
	if x.a.Drops && x.sc.round > 0 && i < x.sc.first+len(x.sc.amended.base.Steps) {
		x.sc.amended.missed = append(x.sc.amended.missed, i)
	}
	switch s.state {
	case spread:
		if !s.halted {
			x.haltItems(i, at, out)
		}
	case entered:
		x.haltComposite(i, at, out)
	default:
		x.giveUp(i, at, out)
	}
}

// add lets what an amendment adds take part.
func (x *amending) add(added *reading, at time.Time, out *Effects) {
	sc, a, was := x.sc, x.a, len(x.sc.plan.Steps)
	sc.plan, a.inForce = added.Plan, added
	x.addContracts(added.Amended)
	for k, n := range added.Added {
		if n >= was {
			sc.amended.later = append(sc.amended.later, a.first+k)
			sc.remaining++
			x.steps++
		}
		s := &x.calls[sc.at(n)]
		if n < was {
			s.below, added.below[k] = added.below[k], s.below
		}
		*s = call{Call: Call{Step: sc.at(n)}, state: waiting, scope: sc.number, below: s.below}
	}
	for _, n := range added.Added {
		s := &x.calls[sc.at(n)]
		for _, d := range added.Plan.Steps[n].Deps {
			if !x.calls[sc.at(d)].state.terminal() {
				s.missing++
			}
		}
	}
	x.settleAdmitted(added.Amended, at, out)
	for _, n := range added.Added {
		if s := &x.calls[sc.at(n)]; s.missing == 0 && s.state == waiting {
			sc.reach(x.Run, n)
		}
	}
}

// admitted is what was decided of the added steps when they were admitted to a round, or to what its planner has begun. What a
// record says of that for any other plan does not count: there is no agent that it could be about.
func (x *amending) admitted() *Admitted {
	if x.sc.round == 0 && !isBegun(x.sc) {
		return nil
	}
	return x.a.Admitted
}

// settleAdmitted decides the steps of a round that came to something when they were admitted.
func (x *amending) settleAdmitted(added *plan.Amended, at time.Time, out *Effects) {
	how := x.admitted()
	if how == nil {
		return
	}
	for _, e := range how.Reaches {
		x.reachFurther(e)
	}
	now := x.sc.amended
	now.direct, now.earlier = append(now.direct, how.Direct...), append(now.earlier, how.Earlier...)
	of := &Round{Settled: how.Settled, Earlier: how.Earlier}
	for _, n := range added.Added {
		agentOf(&x.tree, x.sc).settled(x.Run, x.sc, n, of, at, out)
	}
}

// reachFurther lets a step that stands for an earlier round have more of its results. What referred to it before finds what it
// found: nothing that was there goes, and what refers to all of a round has had all of it.
func (x *amending) reachFurther(e Earlier) {
	n, known := x.sc.plan.Index(e.Step)
	if !known {
		return // nobody of ours wrote it
	}
	i := x.sc.at(n)
	was := x.calls[i].result
	if was == nil || was.Parts == nil {
		return // likewise
	}
	further := *was // others may be reading what it was
	further.Parts = slices.Clip(was.Parts)
	for _, p := range agentOf(&x.tree, x.sc).parts(x.Run, e) {
		if !slices.ContainsFunc(was.Parts, func(had Part) bool { return had.ID == p.ID }) {
			further.Parts = append(further.Parts, p)
		}
	}
	x.calls[i].result = &further
	delete(x.entries, i) // as it was put together before
}

// tools returns the contracts of the tools that added steps may call.
func (x *amending) tools() map[string]*tool.Contract {
	if how := x.admitted(); how != nil {
		return how.Contracts
	}
	return x.used(&x.tree).with(x.a).contracts
}

// addContracts adds the contracts of added steps, and before them those of the plans within.
func (x *amending) addContracts(added *plan.Amended) {
	tools := x.tools()
	for _, n := range added.Added {
		if inner := added.Plan.Steps[n].Plan; inner != nil {
			x.contracts = appendContracts(x.contracts, inner, tools)
		}
	}
	for _, n := range added.Added {
		if x.sc.amended.contracts == nil {
			x.sc.amended.contracts = map[int]int{}
		}
		x.sc.amended.contracts[n] = len(x.contracts)
		x.contracts = append(x.contracts, contractFor(&added.Plan.Steps[n], tools))
	}
}
