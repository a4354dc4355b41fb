package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// allCategory has the tools of all categories, where a facade has tools without one.
const allCategory = "all"

// unfold reads a facade, and the entries that it opens.
func (p *entryReader) unfold(m map[string]value, at string, in place) {
	name := p.name(m["unfold"], "write the name of the facade")
	if m == nil || name == "" {
		return
	}
	if !subjects.ValidTool(name) {
		p.problem(fault.InvalidID, m["unfold"].at, "a name is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no tool name", clip(name))
		return
	}
	if in.depth == MostNesting {
		p.problem(fault.LimitExceeded, at, "put its tools into the facade around it", "more than %d facades within each other", MostNesting)
		return
	}
	e := &Entry{Name: name, Kind: KindFacade, Tool: name, At: at, Description: p.text(m["description"]), InputSchema: noArguments}
	if !m["description"].there() {
		p.problem(fault.InvalidValue, at, `add "description": what its tools are for, and that it has to be called to see them`,
			"a facade has a description")
	}
	f := &facade{notes: p.text(m["notes"]), exclusive: p.flag(m["exclusive"]), selects: p.name(m["select"], "write the name of a tool")}
	e.facade = f
	first := len(p.def.entries)
	if p.put(e, in) == nil {
		return
	}
	p.gates(e, m)
	p.wantTool(f.selects, m["select"].at)
	p.facadeArguments(e, m)
	inside := place{facade: e, depth: in.depth + 1}
	p.categories(e, m["by"], m["tools"], inside)
	p.entryList(m["tools"], inside)
	p.close(e, first, m)
}

// noArguments is the schema of a tool that takes none.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// facadeArguments reads what a facade is called with.
func (p *entryReader) facadeArguments(e *Entry, m map[string]value) {
	v := m["inputSchema"]
	if !v.there() {
		return
	}
	e.facade.takesArgs = true
	if m["by"].there() {
		p.problem(fault.InvalidValue, v.at, `leave it out: "by" makes one, with the categories`, `"by" and "inputSchema" exclude each other`)
		return
	}
	if p.schema(v) != nil {
		e.InputSchema = v.raw
	}
}

// close adds what tells of an open facade, and takes one away that has nothing to open.
func (p *entryReader) close(e *Entry, first int, m map[string]value) {
	some := len(p.def.entries) > first+1
	switch {
	case !some && e.facade.selects == "" && !m["tools"].there() && !m["by"].there():
		p.problem(fault.InvalidValue, e.At, `add "tools": […] or "select": the name of a tool that returns entries`, "the facade %q has no tools", clip(e.Name))
	case !some && e.facade.selects == "" && p.def.universe.catalog != nil: // all that it would have are left out
		p.def.entries = p.def.entries[:first]
	default:
		c := &Entry{Name: e.Name + "_context", Kind: KindContext, Tool: e.Name + "_context", At: e.At, InputSchema: noArguments}
		c.facade = e.facade
		p.put(c, place{facade: e})
	}
}

// categories reads which tools of a facade are there in which category.
func (p *entryReader) categories(e *Entry, by, common value, in place) {
	if !by.there() {
		return
	}
	names, parameters := by.members()
	if by.kind() != jsontape.Object || len(names) != 1 || parameters[names[0]].kind() != jsontape.Object {
		p.problem(fault.InvalidValue, by.at, `write {"category": {"read": ["read_file"], "write": ["write_file"]}}`,
			"must be an object of one name, that of the argument, and behind it an object of categories")
		return
	}
	e.facade.parameter, e.facade.takesArgs = names[0], true
	if !validName(names[0]) {
		p.problem(fault.InvalidValue, by.at, `write "category"`, "%q is no name of an argument", clip(names[0]))
		return
	}
	categories, lists := parameters[names[0]].members()
	if len(categories) == 0 || len(categories) > MostNames {
		p.problem(fault.InvalidValue, parameters[names[0]].at, "", "%d categories; 1 to %d are allowed", len(categories), MostNames)
		return
	}
	for _, c := range categories {
		if !validName(c) {
			p.problem(fault.InvalidValue, lists[c].at, "a category is 1 to 128 of A-Z a-z 0-9 _ . : / -", "%q is no category", clip(c))
			return
		}
	}
	all := slices.Sorted(slices.Values(categories))
	if len(common.items()) > 0 && !slices.Contains(all, allCategory) {
		all = append(all, allCategory)
	}
	e.facade.categories = all
	e.InputSchema = marshal(map[string]any{"type": "object", "required": []string{names[0]},
		"properties": map[string]any{names[0]: map[string]any{"type": "string", "enum": all}}})
	p.categorised(categories, lists, in)
}

// categorised reads the entries of all categories, each once: one that stands in several is there in each of them.
func (p *entryReader) categorised(categories []string, lists map[string]value, in place) {
	type entry struct {
		value
		in []string
	}
	var order []string
	entries := map[string]*entry{}
	for _, c := range categories {
		if lists[c].kind() != jsontape.Array {
			p.wrong(lists[c], "an array of entries", "")
			continue
		}
		for _, v := range lists[c].items() {
			key := string(v.raw)
			if entries[key] == nil {
				entries[key] = &entry{value: v}
				order = append(order, key)
			}
			entries[key].in = append(entries[key].in, c)
		}
	}
	for _, key := range order {
		x := entries[key]
		in.categories = x.in
		if slices.Contains(in.facade.facade.categories, allCategory) && !slices.Contains(x.in, allCategory) {
			in.categories = append(slices.Clone(x.in), allCategory)
		}
		p.entry(x.value, in)
	}
}
