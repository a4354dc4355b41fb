package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// People may amend what a round runs. What they add passes the admission that the planner's own calls have passed, once: what
// that came to stands in the record of the amendment, and every owner follows it.

// Amend admits steps that are added to what a round runs, as the planner's own were: only entries may be called, what is
// locked now and nothing that it waits for may open has failed, and the budget has room for all. It returns them as they are
// recorded, with what was decided. scope is the token of the round. The error says that it can't be amended at all.
func Amend(l *Loop, round int, scope string, change *wire.Change) ([]json.RawMessage, *wire.AmendedRound, []fault.Problem, *fault.Error) {
	x, err := l.answer(round)
	if err != nil {
		return nil, nil, nil, err
	}
	f, _ := l.begin(round)
	if x.answer == nil || x.answer.Fragment == nil {
		return nil, nil, nil, fault.New(fault.NotAmendable, "the round %s runs nothing", scope)
	}
	a := &Amended{Add: change.Add, Discard: change.Discard.Steps, Rest: change.Discard.Rest, Round: &wire.AmendedRound{}}
	b, from, report := x.answer.Amend(change.Add, a.discards, f, l.earlier(round))
	if b == nil {
		return nil, nil, report.Problems, nil
	}
	admits := f.AdmitMore(b.Calls, from, factsNow(l, round, f))
	problems := slices.Concat(admits.Problems, admits.Lists)
	y := x.with(b, from, a)
	d := &wire.Round{Settled: map[string]wire.Settled{}, Waits: map[string][]string{}, Tools: map[string]string{}}
	ids := map[string]bool{}
	for i := from; i < len(b.Calls); i++ {
		c := b.Calls[i]
		l.named(d, round, y, i)
		for _, other := range admits.Waits[i] {
			d.Waits[y.paths[i]] = append(d.Waits[y.paths[i]], y.paths[other])
		}
		if c.Within >= 0 {
			if s := admits.Settled[i]; l.Within && s.Err != nil && s.Err.Code == fault.Locked {
				d.Settled[y.paths[i]] = wire.Settled{Error: s.Err}
			}
			continue
		}
		ids[c.ID] = true
		if s, is := admits.Settled[i]; is {
			d.Settled[c.ID] = wire.Settled{Result: s.Result, Error: s.Err}
		}
		if e := l.entry(round, y, i); e != nil && e.Direct {
			d.Direct = append(d.Direct, c.ID)
		}
		if b.Again[c.ID] {
			a.Round.Again = append(a.Round.Again, c.ID)
		}
	}
	d.Earlier = l.referred(b, round)
	a.Round.Reaches = further(l, round, x, d.Earlier)
	a.Round.Settled = d.Settled
	if y = x.with(b, from, a); len(problems) == 0 {
		problems = tooLong(scope, y)
		if calls, left, over := y.overBudget(l.Usage(round), l.Definition.Advance); over {
			problems = append(problems, fault.Problem{
				Code: fault.BudgetExceeded, Path: "/add", Message: fmt.Sprintf("with these the round would make %d calls, and the budget leaves %d", calls, left),
				Hint: "add fewer, the most important ones",
			})
		}
	}
	whole := &wire.Round{Fragment: b.Fragment, Tools: merged(maps.Clone(x.tools), d.Tools)}
	if record := l.Rounds[round].Record; record != nil {
		whole.Tools = merged(whole.Tools, record.Tools)
	}
	if p, _ := planOf(whole, l.Templates); p != nil && len(problems) == 0 {
		if deep := tooDeep(p, scope); deep != nil {
			problems = append(problems, *deep)
		}
	}
	if len(problems) > 0 {
		return nil, nil, placed(problems, change.Add), nil
	}
	a.Round.Tools, a.Round.Own, a.Round.Waits, a.Round.Direct, a.Round.Earlier = d.Tools, d.Own, d.Waits, d.Direct, d.Earlier
	return b.Added(x.answer, ids), a.Round, nil, nil
}

// factsNow returns the facts of now in a round that goes on.
func factsNow(l *Loop, round int, begun *agent.Facts) *agent.Facts {
	f := begun.Clone()
	for _, o := range outcomesOf(l, round, ^uint64(0)) {
		o.addTo(f, l, round)
	}
	shared, _ := l.shared(round, ^uint64(0), nil)
	f.Share(shared)
	return f
}

// further takes out of what an amended round refers to in earlier ones what it did before, and returns what those of its steps
// have besides that stood for them before.
func further(l *Loop, round int, x *reading, all map[string][]string) (more map[string][]string) {
	had := x.earlier
	if r := l.Rounds[round].Record; r != nil {
		had = reached(r.Earlier, had)
	}
	for name, before := range had {
		besides := slices.DeleteFunc(slices.Clone(all[name]), func(id string) bool { return slices.Contains(before, id) })
		if len(besides) > 0 {
			more = merged(more, map[string][]string{name: besides})
		}
		delete(all, name)
	}
	return more
}

// placed gives problems of steps that are added the places of these.
func placed(problems []fault.Problem, add []json.RawMessage) []fault.Problem {
	for i := range problems {
		p := &problems[i]
		k := slices.IndexFunc(add, func(step json.RawMessage) bool { return p.Step != "" && idOf(step) == p.Step })
		if p.Path == "" && k >= 0 {
			p.Path = "/add/" + strconv.Itoa(k)
		} else if p.Path == "" {
			p.Path = "/add"
		}
	}
	return problems
}

// Admitted returns what the record of an amendment says of its steps, as the machine takes it. The definition is that of the
// agent; nil where it is not known. Templates and contracts are
// those that the run froze.
func Admitted(d *wire.AmendedRound, a *agent.Definition, templates map[string]*plan.Template, contracts map[string]*tool.Contract) *machine.Admitted {
	out := &machine.Admitted{Contracts: contracts, Templates: renamed(templates, d.Tools), After: d.Waits, Direct: d.Direct, Settled: map[string]*machine.Result{}}
	out.Name = func(s *plan.Step) {
		one := []plan.Step{*s}
		rename(one, d.Tools, d.Own, a)
		*s = one[0]
		orderWithin(s, d.Waits)
	}
	for id, s := range d.Settled {
		out.Settled[id] = &machine.Result{Value: s.Result, Error: s.Error}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Earlier)) {
		out.Earlier = append(out.Earlier, earlierOf(name, d.Earlier[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Reaches)) {
		out.Reaches = append(out.Reaches, earlierOf(name, d.Reaches[name]))
	}
	return out
}
