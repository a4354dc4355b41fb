package agent

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// gates reads when an entry may be called.
func (p *parser) gates(e *Entry, m map[string]value) {
	p.inStates(e, m["in"])
	v := m["needs"]
	if !v.there() {
		return
	}
	n := p.object(v, "needs", "all", "any", "called", "artifact", "state", "when")
	if n == nil {
		return
	}
	word := ofSucceeded
	if p.flag(n["called"]) {
		word = ofCalled
	}
	p.needsTools(e, n["all"], clauseAll, word)
	p.needsTools(e, n["any"], clauseAny, word)
	if typ := p.name(n["artifact"], "write a type"); typ != "" {
		if validName(typ) {
			e.add(clauseArtifact, behind(ofArtifact, typ)+" != null", typ)
		} else {
			p.problem(fault.InvalidValue, n["artifact"].at, "a type is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no type", clip(typ))
		}
	}
	p.needsShared(e, n["state"])
	if c := p.condition(n["when"], factWords); c != nil {
		e.clauses = append(e.clauses, clause{clauseWhen, nil, c.x.Text(), c})
	}
	if len(n) == 0 || !n["all"].there() && !n["any"].there() && !n["artifact"].there() && !n["state"].there() && !n["when"].there() {
		p.problem(fault.InvalidValue, v.at, `write {"all": ["search"]}, {"any": […]}, {"artifact": "Document"}, {"state": "user"} or {"when": "…"}`,
			"nothing is needed")
	}
}

// needsTools reads the tools that an entry needs.
func (p *parser) needsTools(e *Entry, v value, kind clauseKind, word string) {
	names := p.texts(v, "tools")
	if v.there() && len(names) == 0 && len(v.items()) == 0 {
		p.problem(fault.InvalidValue, v.at, "name at least one tool, or leave it out", "no tool is named")
	}
	if len(names) == 0 {
		return
	}
	facts := make([]string, len(names))
	for i, name := range names {
		if !subjects.ValidTool(name) {
			p.problem(fault.InvalidID, v.at, "a name is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no tool name", clip(name))
			return
		}
		facts[i] = behind(word, name)
		p.wants = append(p.wants, want{word, name, v.at})
	}
	join := " and "
	if kind == clauseAny {
		join = " or "
	}
	e.add(kind, strings.Join(facts, join), names...)
}

// needsShared reads a path of the state that has to be there.
func (p *parser) needsShared(e *Entry, v value) {
	path := p.name(v, "write a path, such as user.profile")
	if path == "" {
		return
	}
	written := "$state" + dotted(path)
	r, end, why := readReference(written, 1, []string{ofState})
	switch {
	case len(written) > plan.MaxPath:
		why = fmt.Sprintf("it has more than %d bytes", plan.MaxPath)
	case why == "" && end != len(written):
		why = "it ends before " + clip(written[end:])
	}
	if why != "" {
		p.problem(fault.InvalidRef, v.at, `write "user" or "user.profile"`, "%q is no path: %s", clip(path), why)
		return
	}
	e.add(clauseShared, r.String()+" != null", path)
}

// inStates reads the states in which an entry is there.
func (p *parser) inStates(e *Entry, v value) {
	if !v.there() {
		return
	}
	states := p.texts(v, "states")
	for i, s := range states {
		if !validName(s) {
			p.problem(fault.InvalidValue, v.at, "a state is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no state", clip(s))
			return
		}
		p.stateUses = append(p.stateUses, stateUse{states[i], v.at, false})
	}
	if len(states) == 0 {
		if len(v.items()) == 0 {
			p.problem(fault.InvalidValue, v.at, "leave it out for an entry that is there in all states", "no state is named")
		}
		return
	}
	e.states = states
	e.add(clauseState, "$state in ["+quotedJSON(states)+"]", states...)
}

// move reads the state that an entry leads to.
func (p *parser) move(e *Entry, v value) {
	s := p.name(v, "write a state")
	if s == "" {
		return
	}
	if !validName(s) {
		p.problem(fault.InvalidValue, v.at, "a state is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no state", clip(s))
		return
	}
	e.To = s
	p.stateUses = append(p.stateUses, stateUse{s, v.at, true})
}
