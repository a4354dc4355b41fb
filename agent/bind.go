package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// bind reads the arguments that the planner does not see, and takes them out of the schema.
func (p *parser) bind(e *Entry, v value, in place) {
	e.binds = append(slices.Clone(e.binds), p.binds(v, p.bindWordsIn(in), in.chain != nil)...)
	var names []string
	for _, b := range e.binds {
		names = append(names, b.name)
	}
	if len(names) == 0 || len(e.InputSchema) == 0 {
		return
	}
	schema, known := without(e.InputSchema, names)
	for _, name := range names {
		if len(known) > 0 && !slices.Contains(known, name) {
			at := e.At
			if v.there() {
				at = v.at
			}
			p.problem(fault.InvalidArguments, at+"/"+jsontape.EscapeToken(name), thereAre(name, known), "%q takes no argument %q", e.Tool, clip(name))
		}
	}
	e.InputSchema = schema
}

func (p *parser) bindWordsIn(in place) []string {
	switch {
	case in.facade != nil && in.facade.facade.takesArgs:
		return bindArgsWords
	default:
		return bindWords
	}
}

// binds reads an object of arguments; of a chain, $artifact is its object.
func (p *parser) binds(v value, words []string, chained bool) (all []bind) {
	if !v.there() {
		return nil
	}
	if v.kind() != jsontape.Object {
		p.wrong(v, "an object of arguments", `write {"user_id": "$input.user_id"}`)
		return nil
	}
	names, members := v.members()
	for _, name := range names {
		x := members[name]
		b := bind{name: name, raw: x.raw}
		if x.kind() == jsontape.String {
			switch s := jsontape.Unquoted(x.raw); {
			case strings.HasPrefix(s, "$$"): // a text
				b.raw = quoteJSON(s[1:])
			case strings.HasPrefix(s, "$"):
				if b.ref = p.bound(x, words, chained); b.ref == nil {
					continue
				}
			}
		}
		all = append(all, b)
	}
	return all
}

// bound reads the reference of a bound argument.
func (p *parser) bound(v value, words []string, chained bool) *reference {
	s := jsontape.Unquoted(v.raw)
	r, end, why := readReference(s, 1, words)
	switch {
	case why != "":
	case end != len(s):
		why = "behind the reference stands " + clip(s[end:])
	case r.word == ofArtifact && !chained && (len(r.path) == 0 || r.path[0].key == ""):
		why = "behind $artifact stands the name of a type, as in $artifact.User.id"
	}
	if why != "" {
		p.problem(fault.InvalidRef, v.at, "write a reference and nothing else, or a value; a text that begins with a dollar has two", "%q: %s", clip(s), why)
		return nil
	}
	return &r
}

// without takes properties out of a schema. known are all that it had.
func without(schema json.RawMessage, names []string) (cut json.RawMessage, known []string) {
	var all, properties map[string]json.RawMessage
	if json.Unmarshal(schema, &all) != nil || json.Unmarshal(all["properties"], &properties) != nil {
		return schema, nil
	}
	for name := range properties {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, name := range names {
		delete(properties, name)
	}
	all["properties"] = marshal(properties)
	var required []string
	if json.Unmarshal(all["required"], &required) == nil {
		required = slices.DeleteFunc(required, func(r string) bool { return slices.Contains(names, r) })
		if all["required"] = marshal(required); len(required) == 0 {
			delete(all, "required")
		}
	}
	return marshal(all), known
}
