package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// Held is a place of the state that a step writes its result to, and which has a schema.
type Held struct {
	Schema *tool.Schema // of the state
	Path   []string     // the place
	// Part says that others write there, too: what the result lacks may come from them.
	Part bool
}

// Shown is a place within the result, by its JSON pointer, as a reference of the dialect.
func (h Held) Shown(pointer string) string {
	var p path
	for _, key := range h.Path {
		p = append(p, elem{key: key})
	}
	tokens := strings.Split(pointer, "/")
	for _, token := range tokens[1:] { // the first is what stands before the first slash
		e := elem{key: jsontape.UnescapeToken(token)}
		if n, err := strconv.Atoi(token); err == nil && strconv.Itoa(n) == token {
			e = elem{index: n, kind: isIndex}
		}
		p = append(p, e)
	}
	return ref{ofState, p}.String()
}

// Held returns what the schema of the state says of the result of a step of the compiled plan. Results that go into a list
// or a text are held against it there, where they are put together.
func (d *Compiled) Held(step int) (all []Held) {
	c := d.doc
	if c.schema == nil {
		return nil
	}
	if step >= len(c.calls) {
		if x := c.cells[step-len(c.calls)]; x.fold && x.path.keysOnly() {
			all = append(all, Held{c.schema, x.path.keys(), true})
		}
		return all
	}
	k := &c.calls[step]
	if k.meta[metaOutput] == 0 || k.method == "push" || k.method == "concat" {
		return nil
	}
	for _, p := range k.results {
		all = append(all, Held{c.schema, p.keys(), k.method == "merge" || blueprint{c}.shared(step, p)})
	}
	return all
}

// shared reports whether another call writes at a path, above it or below it, or the initial state has something there.
func (c blueprint) shared(call int, p path) bool {
	others := func(w writer) bool { return w.call != call }
	all, here := c.writersOf(p)
	return c.constant(c.initial, p) != 0 || here.any(others) || slices.ContainsFunc(all, func(a above) bool { return others(a.writer) })
}

// keys returns the keys of a path of nothing else.
func (p path) keys() []string {
	all := make([]string, len(p))
	for i, e := range p {
		all[i] = e.key
	}
	return all
}
