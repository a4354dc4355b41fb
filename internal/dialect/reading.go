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
	keys    []string // of below, in the order in which they came
}

// writer is a call that writes at a place.
type writer struct {
	call  int
	fails bool // it writes its error there, not its result
}

// reading is what a path of the state comes to.
type reading struct {
	writers []above  // the last of the list first
	initial int32    // node of the initial state's value; 0 for none
	keys    []string // below which others write
}

// above is a writer at a path or above it: what lies behind rest of what it writes.
type above struct {
	writer
	rest path
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
			at.keys = append(at.keys, e.key)
		}
		at = at.below[e.key]
	}
	return at
}

// view is who reads.
type view struct {
	call   int
	others bool // it sees all others, since none before it in the list writes there; else those before it
	fixed  bool // others says which; else it follows from the path
	// inside is one more than the length of the path whose parts are read: what is pushed and appended there and above is
	// no part.
	inside int
}

// read returns what somebody reads at a path; ok is false where nobody writes it, nor is it there initially.
func (c *compiler) read(v *view, p path) (r reading, ok bool) {
	all, here := c.writersOf(p)
	if c.work += 1 + len(all); here != nil && len(here.keys) > 0 {
		c.work += len(c.calls)
	}
	r.initial = c.constant(c.initial, p)
	before := func(w writer) bool { return w.call < v.call }
	if !v.fixed {
		v.fixed = true
		v.others = r.initial == 0 && !here.any(before) && !slices.ContainsFunc(all, func(a above) bool { return before(a.writer) })
	}
	sees := before
	if v.others {
		sees = func(w writer) bool { return w.call != v.call }
	}
	for _, a := range all {
		if sees(a.writer) && !(c.grows(a) && len(p)-len(a.rest) < v.inside) {
			r.writers = append(r.writers, a)
		}
	}
	slices.SortStableFunc(r.writers, func(a, b above) int { return cmp.Or(b.call-a.call, len(a.rest)-len(b.rest)) })
	if here != nil {
		for _, k := range here.keys {
			if b := here.below[k]; slices.ContainsFunc(b.writers, sees) || b.any(sees) {
				r.keys = append(r.keys, k)
			}
		}
	}
	return r, r.initial != 0 || len(r.keys) > 0 || len(r.writers) > 0
}

// grows reports whether a writer adds to a list or a text.
func (c *compiler) grows(w above) bool {
	m := c.calls[w.call].method
	return !w.fails && (m == "push" || m == "concat")
}

// writersOf returns who writes at a path or above it, and the place of the path; nil where nobody writes there or below.
func (c *compiler) writersOf(p path) (all []above, here *place) {
	here = c.written
	for i := 0; here != nil; i++ {
		for _, w := range here.writers {
			all = append(all, above{writer: w, rest: p[i:]})
		}
		if i == len(p) {
			return all, here
		}
		if p[i].kind != isKey {
			return all, nil
		}
		here = here.below[p[i].key]
	}
	return all, nil
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
