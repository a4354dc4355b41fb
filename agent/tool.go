package agent

import (
	"slices"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// tool adds the entry of a tool; nil where there is none.
func (p *entryReader) tool(name, at string, in place, optional bool) *Entry {
	if !subjects.ValidTool(name) {
		p.problem(fault.InvalidID, at, "a name is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no tool name", clip(name))
		return nil
	}
	e := &Entry{Name: name, Kind: KindTool, Tool: name, At: at}
	if p.def.universe.catalog != nil {
		t, ok := p.def.universe.lookup(name)
		if !ok {
			p.absent[name] = true
			if !optional {
				p.problem(fault.UnknownTool, at, thereAre(name, p.def.universe.names()), "there is no tool %q", clip(name))
			}
			return nil
		}
		e.Description, e.InputSchema, e.OutputSchema = t.Description, t.InputSchema, t.OutputSchema
		e.Destructive = t.Annotations != nil && t.Annotations.DestructiveHint != nil && *t.Annotations.DestructiveHint
	}
	return p.put(e, in)
}

// put adds an entry to its place; nil where there are too many.
func (p *entryReader) put(e *Entry, in place) *Entry {
	if len(p.def.entries) == MostEntries {
		if !p.full {
			p.problem(fault.LimitExceeded, e.At, "let the planner find them by search_tools", "more than %d entries", MostEntries)
		}
		p.full = true
		return nil
	}
	if in.facade != nil {
		p.inFacade(e, in)
	}
	if in.chain != nil {
		e.chain = in.chain
		e.add(clauseBound, behind(ofBound, in.chain.typ)+" != null", in.chain.typ)
		e.binds = in.chainBinds
		in.chain.has = true
	}
	e.input = sync.OnceValue(func() *tool.Schema { return declared(e.InputSchema) })
	e.output = sync.OnceValue(func() *tool.Schema { return declared(e.OutputSchema) })
	p.def.entries = append(p.def.entries, e)
	return e
}

// inFacade puts an entry into its facade: it is there once that is open, in its category.
func (p *entryReader) inFacade(e *Entry, in place) {
	f := in.facade
	e.within = f
	e.clauses = append(slices.Clone(f.clauses), e.clauses...)
	open := behind(ofOpened, f.Name)
	if in.categories == nil {
		e.add(clauseOpened, open+" != null", f.Name)
		return
	}
	chosen := reference{ofOpened, []element{{key: f.Name}, {key: f.facade.parameter}}}.String()
	e.add(clauseOpened, chosen+" in ["+quotedJSON(in.categories)+"]", append([]string{f.Name}, in.categories...)...)
}

// group adds the tools of a group.
func (p *entryReader) group(m map[string]value, at string, in place) {
	role := p.name(m["group"], "write the role of a group")
	if m == nil || role == "" {
		return
	}
	optional, prefix, note := p.flag(m["optional"]), p.text(m["prefix"]), p.text(m["note"])
	picks := p.picks(m["include"], m["exclude"])
	if p.def.universe.catalog == nil || picks == nil {
		return
	}
	tools, ok := p.def.universe.catalog.Group(role)
	if !ok {
		if !optional {
			p.problem(fault.UnknownTool, m["group"].at, thereAre(role, p.def.universe.catalog.Groups()), "there is no group %q", clip(role))
		}
		return
	}
	some := false
	for _, name := range tools {
		t, there := p.def.universe.lookup(name)
		if !there || !picks(selector.Tool{Name: name, Groups: []string{role}, Annotations: t.Annotations}) {
			continue
		}
		some = true
		if e := p.tool(name, at, in, true); e != nil {
			e.Name, e.Description = prefix+name, withNote(e.Description, note)
			p.gates(e, m)
		}
	}
	if !some && !optional {
		p.problem(fault.UnknownTool, at, thereAre("", tools), "no tool of the group %q is picked", clip(role))
	}
}

// picks reads which tools of a group are meant; nil where nobody can tell.
func (p *entryReader) picks(include, exclude value) func(selector.Tool) bool {
	var elements []string
	elements = append(elements, p.texts(include, "names or expressions")...)
	for _, s := range p.texts(exclude, "names or expressions") {
		elements = append(elements, "!"+s)
	}
	if len(elements) == 0 {
		return func(selector.Tool) bool { return true }
	}
	s, err := selector.Parse(strings.Join(elements, ","))
	if err != nil {
		at := include.at
		if !include.there() {
			at = exclude.at
		}
		p.problem(fault.InvalidValue, at, fault.As(err).Hint, "%s", fault.As(err).Message)
		return nil
	}
	return s.Picks
}
