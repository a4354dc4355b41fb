package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// checker looks at entries once all are known.
type checker struct{ *parser }

// check looks for entries that contradict each other, once all are known.
func (p *checker) check(agent value) {
	if len(p.def.entries) == 0 && len(p.Problems) == 0 {
		p.warn(fault.InvalidValue, agent.at+"/tools", `add "tools": ["search"]`, "the agent has no tools: it can only answer")
	}
	for _, e := range p.def.entries {
		p.dynamic = p.dynamic || e.facade != nil && e.facade.selects != ""
	}
	excludeOthers(p.def.entries, p.def.entries)
	p.namesMeet()
	p.checkWants()
	p.checkStates(agent)
	p.checkReach()
}

// excludeOthers hides entries behind each facade that is exclusive, but those that are in it or that it is in.
func excludeOthers(facades, entries []*Entry) {
	for _, f := range facades {
		if f.Kind != KindFacade || !f.facade.exclusive {
			continue
		}
		for _, e := range entries {
			if !e.inFacade(f) && !f.inFacade(e) {
				e.add(clauseExclusive, behind(ofOpened, f.Name)+" == null", f.Name)
			}
		}
	}
}

// namesMeet refuses entries that a planner could not tell apart.
func (p *checker) namesMeet() {
	first := map[string]*Entry{}
	for _, e := range p.def.entries {
		other, twice := first[e.Name]
		if !twice {
			first[e.Name] = e
			continue
		}
		hint := `name one of them by "as"`
		if e.Kind == KindContext || other.Kind == KindContext {
			hint = "a facade's context has its name and _context: give one of them another name"
		} else if e.Kind != KindTool {
			hint = "leave one of them out, or give it another name"
		}
		p.problem(fault.InvalidValue, e.At, hint, "the entry at %s is called %q, too", other.At, clip(e.Name))
	}
}

// checkWants refuses conditions on what can never be.
func (p *checker) checkWants() {
	tools, facades, bound := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for name := range p.absent {
		tools[name] = true
	}
	for _, e := range p.def.entries {
		tools[e.Tool] = true
		if e.Kind == KindFacade {
			facades[e.Name] = true
		}
	}
	for _, c := range p.def.chains {
		bound[c.typ] = true
	}
	unsure := p.dynamic || p.def.universe.catalog == nil
	of := map[string]struct {
		what  string
		there map[string]bool
	}{
		ofCalled: {"tool", tools}, ofSucceeded: {"tool", tools}, ofOpened: {"facade", facades}, ofBound: {"chain", bound},
	}
	for _, w := range p.wants {
		if w.word == ofState {
			if p.def.States == nil {
				p.problem(fault.UnknownRef, w.at, `add "states": {"initial": "…"} to the agent, or write $state.path`, "the agent has no states")
			}
			continue
		}
		if known := of[w.word]; !known.there[w.name] && !(unsure && known.what == "tool") {
			hint := thereAre(w.name, slices.Sorted(maps.Keys(known.there)))
			if as := p.toolCalled(w.name); as != "" && known.what == "tool" {
				hint = fmt.Sprintf("facts have the name of the tool: write %q", as)
			}
			p.problem(fault.UnknownTool, w.at, hint, "no entry is of a %s %q", known.what, clip(w.name))
		}
	}
}

// toolCalled returns the tool of the entry that a planner calls by a name.
func (p *checker) toolCalled(name string) string {
	for _, e := range p.def.entries {
		if e.Name == name && e.Tool != name {
			return e.Tool
		}
	}
	return ""
}

// checkStates refuses states that nothing leads to, and such that nothing can be called in.
func (p *checker) checkStates(agent value) {
	s := p.def.States
	if s == nil {
		if len(p.stateUses) > 0 {
			u := p.stateUses[0]
			p.problem(fault.InvalidValue, agent.at, fmt.Sprintf(`add "states": {"initial": %q}`, u.state), "entries have states, and the agent none")
		}
		return
	}
	s.All = p.stateNames()
	within, reached := map[string]bool{}, map[string]bool{}
	if s.Initial != "" {
		reached[s.Initial] = true
	}
	for _, u := range p.stateUses {
		if u.to {
			reached[u.state] = true
		} else {
			within[u.state] = true
		}
	}
	told := map[string]bool{}
	for _, u := range p.stateUses {
		switch {
		case told[u.state]:
		case u.to && !within[u.state] && !slices.Contains(s.Final, u.state):
			told[u.state] = true
			p.noExit(u.state, u.at, within)
		case !u.to && s.Initial != "" && !reached[u.state]:
			told[u.state] = true
			p.problem(fault.InvalidValue, u.at, thereAre(u.state, slices.Sorted(maps.Keys(reached))), "no entry leads to the state %q", clip(u.state))
		}
	}
	at := agent.at + "/states"
	if s.Initial != "" && !within[s.Initial] && !slices.Contains(s.Final, s.Initial) {
		p.noExit(s.Initial, at+"/initial", within)
	}
	for i, f := range s.Final {
		if !reached[f] && s.from == nil {
			p.problem(fault.InvalidValue, fmt.Sprintf("%s/final/%d", at, i), thereAre(f, s.All), "no entry leads to the state %q", clip(f))
		}
	}
}

// noExit refuses a state that is entered and never left.
func (p *checker) noExit(state, at string, within map[string]bool) {
	hint := thereAre(state, slices.Sorted(maps.Keys(within)))
	if !strings.HasPrefix(hint, "did you mean") {
		hint = fmt.Sprintf(`add an entry with "in": [%q], or name it in "states": {"final": [%q]}`, state, state)
	}
	p.problem(fault.InvalidValue, at, hint, "nothing can be called in the state %q", clip(state))
}

// checkReach refuses tools that wait for each other, so that none of them can ever be called.
func (p *checker) checkReach() {
	r := reach{tools: map[string]bool{}, facades: map[string]bool{}, entries: map[*Entry]bool{}}
	for name := range p.absent {
		r.tools[name] = true
	}
	if p.def.universe.catalog == nil || p.dynamic { // what nobody knows yet may be called
		for _, w := range p.wants {
			if !slices.ContainsFunc(p.def.entries, func(e *Entry) bool { return e.Tool == w.name }) {
				r.tools[w.name] = true
			}
		}
	}
	for more := true; more; {
		more = false
		for _, e := range p.def.entries {
			if !r.entries[e] && r.blocked(e) == "" {
				r.entries[e], r.tools[e.Tool], more = true, true, true
				r.facades[e.Name] = r.facades[e.Name] || e.Kind == KindFacade
			}
		}
	}
	told := map[*Entry]bool{}
	for _, e := range p.def.entries {
		if !r.entries[e] && !told[e] {
			p.circle(e, r, told)
		}
	}
}

// reach is what can be called at all, in some order.
type reach struct {
	tools, facades map[string]bool
	entries        map[*Entry]bool
}

// blocked returns a tool or facade that an entry waits for in vain; empty for none.
func (r reach) blocked(e *Entry) string {
	for f := e.within; f != nil; f = f.within {
		if !r.facades[f.Name] {
			return f.Name
		}
	}
	missing := func(name string) bool { return !r.tools[name] }
	for _, c := range e.clauses {
		switch c.kind {
		case clauseAll:
			if i := slices.IndexFunc(c.names, missing); i >= 0 {
				return c.names[i]
			}
		case clauseAny:
			if !slices.ContainsFunc(c.names, func(name string) bool { return r.tools[name] }) {
				return c.names[0]
			}
		case clauseOpened, clauseExclusive, clauseState, clauseArtifact, clauseShared, clauseWhen, clauseBound: // other checks are theirs
		}
	}
	return ""
}

// circle follows from an entry what each waits for, until one comes again.
func (p *checker) circle(e *Entry, r reach, told map[*Entry]bool) {
	var way []*Entry
	for e != nil && !slices.Contains(way, e) {
		if told[e] {
			return // it waits for a circle that was told of
		}
		told[e] = true
		way = append(way, e)
		next := r.blocked(e)
		i := slices.IndexFunc(p.def.entries, func(x *Entry) bool { return x.Tool == next })
		if i < 0 {
			return // that it is unknown was told
		}
		e = p.def.entries[i]
	}
	way = way[slices.Index(way, e):]
	var names []string
	for _, x := range append(way, e) {
		names = append(names, x.Tool)
	}
	p.problem(fault.Cycle, e.At, `let one of them be called without the others: leave a "needs" out, or write "any"`,
		"none of them can ever be called, since each needs the next: %s", strings.Join(names, " → "))
}
