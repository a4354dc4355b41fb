package dialect

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// stateAt finds where the value of a path of the state may come from.
func (c *compiler) stateAt(v view, p path) (s sources, ok bool) {
	r, ok := c.read(&v, p)
	if !ok {
		return s, false
	}
	if fold := c.foldedAt(r, p); fold >= 0 || len(r.keys) > 0 {
		if fold < 0 {
			fold = len(p)
		}
		id := c.assembled(v, p[:fold])
		return sources{origins: []origin{{step: id, rest: p[fold:], unsure: true}}}, true
	}
	for _, w := range r.writers {
		s.origins = append(s.origins, origin{step: c.writerStep(w.writer), rest: w.rest})
	}
	if r.initial != 0 {
		s.constant = c.raw(r.initial)
	}
	if len(s.origins) > 0 && (len(s.origins) > fewOrigins || !s.scalar()) {
		return c.chosen(s, p), true
	}
	return s, true
}

// foldedAt returns the length of the beginning of a path at which results are put together by a method; -1 where none
// are.
func (c *compiler) foldedAt(r reading, p path) int {
	at := -1
	for _, w := range r.writers {
		own := len(p) - len(w.rest)
		switch m := c.calls[w.call].method; {
		case w.fails, m == methodSet, m == "merge" && len(w.rest) > 0:
		case at < 0 || own < at:
			at = own
		}
	}
	return at
}

// writerStep returns the step whose result a writer writes: its own, or one that comes to its error.
func (c *compiler) writerStep(w writer) string {
	id := c.calls[w.call].id
	if !w.fails {
		return id
	}
	return c.cell("error of "+id, id+"_error", c.calls[w.call].errors[0], func(string) []byte {
		call := c.calls[w.call].id
		return []byte(`"if":"$status:` + call + ` == 'failed'","value":{"code":"$error:` + call + `.tool_code || $error:` + call +
			`.code","details":"$error:` + call + `.details","message":"$error:` + call + `.message"}`)
	})
}

// chosen is a step that comes to the first of several sources that has something.
func (c *compiler) chosen(s sources, p path) sources {
	if !s.scalar() {
		s.origins, s.constant, s.ended = append(s.origins, origin{step: c.constantStep(s.constant, p)}), nil, true
	}
	if len(s.origins) <= fewOrigins {
		return s
	}
	return c.alone(s, p)
}

// alone is one step that comes to the first of several sources that has something.
func (c *compiler) alone(s sources, p path) sources {
	if !s.scalar() {
		s = c.chosen(s, p)
	}
	if len(s.origins) == 1 && s.constant == nil {
		return s
	}
	var needs []string
	if s.skips {
		if len(s.origins) > fewOrigins {
			s.origins = c.alone(sources{origins: s.origins}, p).origins
		}
		needs = c.missing(sources{origins: s.origins})
	}
	text := s.alternatives()
	id := c.cell(strings.Join(needs, "")+text, c.nameOf(p), p, func(string) []byte {
		return jsontape.AppendQuoted(append(anyway(needs), `"value":`...), text)
	})
	unsure := slices.ContainsFunc(s.origins, func(o origin) bool { return o.unsure || len(o.rest) > 0 })
	return sources{origins: []origin{{step: id, unsure: unsure && !s.sure()}}, ended: s.sure()}
}

// constantStep is a step that comes to a constant.
func (c *compiler) constantStep(constant []byte, p path) string {
	return c.cell("constant "+string(constant), c.nameOf(p)+"_initial", p, func(string) []byte {
		if calculates.Match(constant) {
			c.add(fault.InvalidValue, "/calls", "give the key another name", `a constant that stands in for what calls write can't have the key "$calc"`)
		}
		return c.escaped([]byte(`"value":`), constant, "/state/initial")
	})
}

// calculates finds what would be a calculation in a value.
var calculates = regexp.MustCompile(`"(\$|\\u0024)+calc"`)

// escaped appends a constant as arguments that mean it.
func (c *compiler) escaped(out, constant []byte, at string) []byte {
	const around = `{"v":`
	text, err := c.Escape(slices.Concat([]byte(around), constant, []byte{'}'}))
	if err != nil { // it was scanned already; only nesting may be too deep
		c.add(fault.MalformedJSON, at, "flatten it", "a constant is nested too deep")
		return append(out, "null"...)
	}
	return append(out, text[len(around):len(text)-1]...)
}

// Steps that are no calls: values that are put together of what several calls wrote. Each is there once, however many
// read it.

// cell is such a step.
type cell struct {
	id   string
	path path // of the state that it comes to
	call int  // the one that needed it first
	fold bool // results are put together by a method in it
	body []byte
}

// cell returns the id of the step that comes to something; its body is written if it is not there yet.
func (c *compiler) cell(what, name string, p path, write func(id string) []byte) string {
	if id, known := c.cellIDs[what]; known {
		return id
	}
	id := c.freeID(idFrom(name), c.nextID)
	c.ids[id], c.cellIDs[what] = -1, id
	body := write(id)
	c.made += len(body)
	c.cells = append(c.cells, cell{id: id, path: p, call: c.in, body: body})
	return id
}

// nameOf names a step after a path of the state.
func (c *compiler) nameOf(p path) string {
	name := "state"
	for _, e := range p {
		switch e.kind {
		case isKey:
			name += "_" + e.key
		case isIndex:
			name += "_" + strconv.Itoa(e.index)
		case isEvery:
		}
	}
	return name
}

// assembled is a step that comes to the state at a path: what was written there, put together by its methods, and what
// was written below in the places where it belongs. null stands where nobody wrote.
func (c *compiler) assembled(v view, p path) string {
	r, _ := c.read(&v, p)
	a := &assembly{compiler: c, path: p}
	var base sources
	if r.initial != 0 {
		base.constant = c.raw(r.initial)
	}
	rest := r.writers
	for len(rest) > 0 && c.methodOf(rest[len(rest)-1]) == methodSet {
		w := rest[len(rest)-1]
		base.origins = append([]origin{{step: c.writerStep(w.writer), rest: w.rest}}, base.origins...)
		rest = rest[:len(rest)-1]
	}
	a.start(base)
	folds := len(rest) > 0
	for _, w := range slices.Backward(rest) {
		a.fold(c.methodOf(w), sources{origins: []origin{{step: c.writerStep(w.writer), rest: w.rest}}})
	}
	v.inside = len(p) + 1
	for _, k := range r.keys {
		if s, ok := c.stateAt(v, append(slices.Clip(p), elem{key: k})); ok {
			a.put(k, s)
		}
	}
	id := a.step()
	if folds {
		at := slices.IndexFunc(c.cells, func(x cell) bool { return x.id == id })
		c.cells[at].fold = true
	}
	return id
}

// methodOf returns how a writer's value is put together with those before at a path: what comes from above it, and
// errors, take their place.
func (c *compiler) methodOf(w above) string {
	if w.fails || len(w.rest) > 0 {
		return methodSet
	}
	return c.calls[w.call].method
}
