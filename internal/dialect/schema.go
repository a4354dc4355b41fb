package dialect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// blueprint holds a document against the schema of its state. That says which places there are, for whoever writes the
// calls: what is written or read elsewhere is a slip, also where JSON Schema would allow it. A call without _outputPath
// writes to a place of its own, under its id, which the schema need not have.
type blueprint struct{ *compiler }

// check is about what calls write and what the state holds at first.
func (c blueprint) check() {
	if c.schema == nil {
		return
	}
	for i := range c.calls {
		k := &c.calls[i]
		if c.in = i; k.meta[metaOutput] == 0 {
			continue
		}
		for _, p := range k.results {
			c.checkResult(k, p)
		}
		for _, p := range k.errors {
			object := tool.TypePlace("object", false)
			if at, ok := c.declared(k.at+"/_outputPath", p); ok && !object.MayFit(at) {
				c.misfit(k, p, "an error is an object", object, at)
			}
		}
	}
	c.in = -1
	c.checkInitial()
}

// checkResult holds what a tool declares of its result against the place that it is written to.
func (c blueprint) checkResult(k *call, p path) {
	at, ok := c.declared(k.at+"/_outputPath", p)
	_, name := k.callee()
	if !ok || name == 0 || c.Output == nil || k.method != methodSet {
		return
	}
	returned := c.Output(c.str(name)).Find(nil)
	if returned.MayFit(at) {
		return
	}
	what := fmt.Sprintf("what %q returns does not fit", clip(c.str(name)))
	if kinds := returned.Kinds(); len(kinds) > 0 {
		what = fmt.Sprintf("what %q returns is %s", clip(c.str(name)), text.OneOfTypes(kinds))
	}
	c.misfit(k, p, what, returned, at)
}

// fewPlaces are named in a hint.
const fewPlaces = 3

// misfit reports a call that writes what can't be where it writes.
func (c blueprint) misfit(k *call, p path, what string, written, at tool.Place) {
	is := ""
	if kinds := at.Kinds(); len(kinds) > 0 {
		is = ", which is " + text.OneOfTypes(kinds) + " by the schema of the state"
	}
	hint := "let a call between them convert it"
	var fit []string
	for _, keys := range c.schema.Find(nil).Fields(written, fewPlaces) {
		var place path
		for _, key := range keys {
			place = append(place, elem{key: key})
		}
		fit = append(fit, (ref{ofState, place}).String())
	}
	if len(fit) > 0 {
		hint = "write to " + strings.Join(fit, " or ") + ", or " + hint
	}
	c.add(fault.StateMismatch, k.at+"/_outputPath", hint, "%s, and is written to %s%s", what, ref{ofState, p}, is)
}

// declared finds what the schema says of a path, and reports a path that it doesn't have.
func (c blueprint) declared(at string, p path) (tool.Place, bool) {
	into := make([]tool.Elem, len(p))
	for i, e := range p {
		into[i] = tool.Elem{Key: e.key, Index: e.index, IsKey: e.kind == isKey}
		if e.kind == isEvery {
			into[i].Index = tool.AnyItem
		}
	}
	found := c.schema.Find(into)
	if !found.Impossible && !found.Undeclared {
		return found, true
	}
	hint := "the schema of the state has nothing there"
	if e := p[found.At]; e.kind == isKey && len(found.Names) > 0 {
		hint = "there are: " + listed(found.Names)
		if meant := text.NearMiss(e.key, found.Names...); meant != "" {
			better := slices.Clone(p)
			better[found.At].key = meant
			hint = "write " + (ref{ofState, better}).String()
		}
	}
	c.add(fault.StateMismatch, at, hint, "%s is no place of the state by its schema", ref{ofState, p})
	return found, false
}

// checkRead holds a path that is read against the schema, but where a call writes there under its id.
func (c blueprint) checkRead(at string, p path) {
	if c.schema == nil || len(p) > 0 && c.writesByID(p[0].key) {
		return
	}
	c.declared(at, p)
}

// writesByID reports whether a call writes to the place of that name because it says of no other.
func (c blueprint) writesByID(id string) bool {
	i, known := c.ids[id]
	return known && i >= 0 && c.calls[i].meta[metaOutput] == 0
}

// checkInitial holds the initial state against the schema: what is not there yet is no mistake.
func (c blueprint) checkInitial() {
	if c.initial == 0 {
		return
	}
	for _, v := range c.schema.Check(c.raw(c.initial), nil) {
		if v.Missing == "" {
			c.add(fault.StateMismatch, "/state/initial"+v.Pointer, v.Hint, "against the schema of the state: %s", v.Message)
		}
	}
}

// read compiles the schema of the state.
func (c blueprint) read(at string, n int32) {
	if kind := c.tape[n].Kind; kind != jsontape.Object {
		c.add(fault.InvalidValue, at, `write "schema": {"type": "object", "properties": {"name": {"type": "string"}}}`,
			"the schema of the state must be an object, but is %s", kind)
		return
	}
	schema, err := tool.CompileSchema(c.raw(n))
	for _, f := range tool.FlawsOf(err) {
		c.add(fault.InvalidValue, at+f.Path, f.Hint, "%s", f.Message)
	}
	if err == nil {
		c.schema = schema
	}
}
