package agent

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// The fields of each form of entry.
var (
	gateFields   = []string{"needs", "in"}
	toolFields   = append([]string{"tool", "as", "description", "note", "bind", "optional", "direct", "to", "once", "artifact"}, gateFields...)
	groupFields  = append([]string{"group", "include", "exclude", "prefix", "note", "optional"}, gateFields...)
	chainFields  = []string{"chain", "tools", "bind", "when"}
	unfoldFields = append([]string{
		"unfold", "description", "tools", "notes", "exclusive", "by", "inputSchema", "select",
	}, gateFields...)
	searchFields = []string{"search_tools"}
)

// entryReader reads entries, in any of their forms.
type entryReader struct{ *parser }

// entryList reads a list of entries.
func (p *entryReader) entryList(v value, in place) {
	if !v.there() {
		return
	}
	if v.kind() != jsontape.Array {
		p.wrong(v, "an array of entries", `write ["search", {"tool": "fetch"}]`)
		return
	}
	for _, x := range v.items() {
		p.entry(x, in)
	}
}

// entry reads one entry, in any of its forms.
func (p *entryReader) entry(v value, in place) {
	if v.kind() == jsontape.String {
		p.named(v, in)
		return
	}
	if v.kind() != jsontape.Object {
		p.wrong(v, "an entry", `write the name of a tool, or {"tool": …}, {"group": …}, {"unfold": …}, {"chain": …}`)
		return
	}
	_, members := v.members()
	switch {
	case in.chain != nil && members["tool"].kind() != jsontape.String:
		p.problem(fault.InvalidValue, v.at, `write the name of a tool, or {"tool": …}`, "a chain has tools, and nothing else")
	case members["group"].there():
		p.group(p.object(v, "an entry of a group", groupFields...), v.at, in)
	case members["unfold"].there():
		p.unfold(p.object(v, "a facade", unfoldFields...), v.at, in)
	case members["chain"].there():
		p.chainEntry(p.object(v, "a chain", chainFields...), v.at, in)
	case members["search_tools"].there():
		p.searchEntry(p.object(v, "a search", searchFields...)["search_tools"], in)
	case members["tool"].there():
		p.toolEntry(p.object(v, "an entry of a tool", toolFields...), v.at, in)
	default:
		hint := `write the name of a tool, or {"tool": …}, {"group": …}, {"unfold": …}, {"chain": …}, {"search_tools": {…}}`
		p.problem(fault.InvalidValue, v.at, hint, "nobody can tell what this entry is")
	}
}

// named reads an entry that is a name and nothing else.
func (p *entryReader) named(v value, in place) {
	name := p.name(v, "write the name of a tool")
	if name == "" {
		return
	}
	if in.chain == nil && p.builtIn(name, v.at, in) {
		return
	}
	p.tool(name, v.at, in, false)
}

// toolEntry reads {"tool": …}.
func (p *entryReader) toolEntry(m map[string]value, at string, in place) {
	if m == nil {
		return
	}
	name := p.name(m["tool"], "write the name of a tool")
	if name == "" {
		return
	}
	optional := p.flag(m["optional"])
	e := p.tool(name, m["tool"].at, in, optional)
	if e == nil {
		e = &Entry{Name: name, Tool: name, Kind: KindTool} // what else is wrong with it is told all the same
	}
	e.At = at
	if as := p.name(m["as"], "write what the planner is to call it"); as != "" {
		e.Name = as
		if !subjects.ValidTool(as) {
			p.problem(fault.InvalidID, m["as"].at, "a name is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no tool name", clip(as))
		}
	}
	if d := p.text(m["description"]); d != "" {
		e.Description = d
		p.checkText(d, m["description"].at, in)
	}
	e.Description = withNote(e.Description, p.text(m["note"]))
	e.Direct = p.flag(m["direct"])
	if once := m["once"]; once.there() {
		e.Once, e.HasOnce = p.text(once), true
	}
	p.bind(e, m["bind"], in)
	p.artifactOf(e, m["artifact"])
	if in.chain != nil {
		for _, f := range []string{"needs", "in", "to"} {
			if m[f].there() {
				p.problem(fault.InvalidValue, m[f].at, "leave it out, or list the tool outside of the chain", "a chain is free of %q", f)
			}
		}
		return
	}
	p.gates(e, m)
	p.move(e, m["to"])
}

// withNote appends a note to a description.
func withNote(description, note string) string {
	switch {
	case description == "" || note == "":
		return description + note
	case strings.ContainsAny(description[len(description)-1:], ".!?:"):
		return description + " " + note
	}
	return description + ". " + note
}
