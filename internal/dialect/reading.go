package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// place is a place in the state that some call writes at or below.
type place struct {
	writers []writer // in the order of the list
	below   map[string]*place
}

// writer is a call that writes at a place.
type writer struct {
	call  int
	fails bool // it writes its error there, not its result
}

// origin is one call that a reading may get its value from: what lies behind rest of its result or of its error.
type origin struct {
	writer
	rest path
}

// reading is what a reference to the state comes to.
type reading struct {
	origins []origin // the last of the list first: the first that has something counts
	initial int32    // node of the initial state's value, where none has; 0 for none
	parts   bool     // calls write below the path, too
}

// placeWriters notes who writes where.
func (c *compiler) placeWriters() {
	c.written = &place{}
	for i := range c.calls {
		for _, p := range c.calls[i].results {
			c.placeAt(p).add(writer{call: i})
		}
		for _, p := range c.calls[i].errors {
			c.placeAt(p).add(writer{call: i, fails: true})
		}
	}
}

func (p *place) add(w writer) { p.writers = append(p.writers, w) }

func (c *compiler) placeAt(p path) *place {
	at := c.written
	for _, e := range p {
		if at.below[e.key] == nil {
			if at.below == nil {
				at.below = map[string]*place{}
			}
			at.below[e.key] = &place{}
		}
		at = at.below[e.key]
	}
	return at
}

// read returns what call number at reads at a path; ok is false where nobody writes it, nor is it there initially.
func (c *compiler) read(at int, p path) (r reading, ok bool) {
	var all []origin // at or above the path
	here := c.written
	for i := 0; here != nil; i++ {
		for _, w := range here.writers {
			all = append(all, origin{writer: w, rest: p[i:]})
		}
		if i == len(p) {
			break
		}
		if p[i].kind != isKey {
			here = nil
			break
		}
		here = here.below[p[i].key]
	}
	r.initial = c.constant(c.initial, p)
	before := func(w writer) bool { return w.call < at }
	sees := before
	if !slices.ContainsFunc(all, func(o origin) bool { return before(o.writer) }) && !here.any(before) {
		if r.initial != 0 {
			return r, true
		}
		sees = func(w writer) bool { return w.call != at }
	}
	for _, o := range all {
		if sees(o.writer) {
			r.origins = append(r.origins, o)
		}
	}
	slices.SortStableFunc(r.origins, func(a, b origin) int { return cmp.Or(b.call-a.call, len(a.rest)-len(b.rest)) })
	r.parts = here.any(sees)
	return r, r.initial != 0 || r.parts || len(r.origins) > 0
}

// any reports whether somebody of a kind writes below a place.
func (p *place) any(is func(writer) bool) bool {
	if p == nil {
		return false
	}
	for _, b := range p.below {
		if slices.ContainsFunc(b.writers, is) || b.any(is) {
			return true
		}
	}
	return false
}

// unknown reports a reading of what nobody writes.
func (c *compiler) unknown(at string, r ref) {
	if r.of == ofInput {
		hint := `write "input": {"` + clip(firstKey(r.path)) + `": …} beside "calls"`
		if keys := c.keysOf(c.input); len(keys) > 0 {
			hint = "the input has " + listed(keys)
			if near := text.Nearest(firstKey(r.path), keys); len(near) > 0 {
				hint = "did you mean " + ref{ofInput, path{{key: near[0]}}}.String() + "?"
			}
		}
		c.add(fault.UnknownRef, at, hint, "there is no %s", clip(r.String()))
		return
	}
	var paths []string
	for i := range c.calls {
		for _, p := range slices.Concat(c.calls[i].results, c.calls[i].errors) {
			if i != c.in {
				paths = append(paths, p.String())
			}
		}
	}
	for _, key := range c.keysOf(c.initial) {
		paths = append(paths, path{{key: key}}.String())
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	hint := "no call writes to the state"
	if near := text.Nearest(r.path.String(), paths); len(near) > 0 {
		hint = "did you mean †state" + near[0] + "?"
	} else if len(paths) > 0 {
		hint = "there are †state" + strings.Join(paths[:min(len(paths), 12)], ", †state") + `; a call writes where its "_outputPath" says`
	}
	c.add(fault.UnknownRef, at, hint, "no other call writes to %s, and the initial state has nothing there", clip(r.String()))
}

func firstKey(p path) string {
	if len(p) > 0 {
		return p[0].key
	}
	return "name"
}
