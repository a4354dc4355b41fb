package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// foreign is a reference as other languages write it, or a right one inside their marks (rule 10).
type foreign struct {
	id     string
	ref    string // id and path
	digits bool   // nothing but digits, as in $5.00
	marked bool   // it is a right reference, with marks around it
}

// marks stand around a reference in other languages. Where one begins like another, the longer comes first.
var marks = [...]struct{ open, close string }{
	{"${{", "}}"}, {"{{", "}}"}, {"[[", "]]"}, {"${", "}"}, {"{", "}"}, {"<", ">"}, {"%", "%"}, {"$", "$"},
}

// foreign reads a whole string as another language's reference to a step or an item that is known.
func (p *refParser) foreign(s string, known func(id string) bool) (f foreign, is bool) {
	s = trimSpace(s)
	if !mayBeForeign(s) {
		return f, false
	}
	for _, m := range marks {
		if len(s) <= len(m.open)+len(m.close) || !strings.HasPrefix(s, m.open) || !strings.HasSuffix(s, m.close) {
			continue
		}
		inner := trimSpace(s[len(m.open) : len(s)-len(m.close)])
		if right, ok := strings.CutPrefix(inner, refPrefix); ok && m.open != "$" { // $$ref: is an escape
			f, is = p.plain(right, known)
			f.marked = true
		} else if !ok {
			f, is = p.behindSteps(inner, known)
		}
		if is {
			return f, true
		}
	}
	for _, n := range [...]int{foreignWord(s), foreignSign(s, "$steps."), foreignSign(s, "$."), foreignSign(s, s[:1])} {
		if n > 0 {
			if f, is = p.behindSteps(trimSpace(s[n:]), known); is {
				return f, true
			}
		}
	}
	return f, false
}

// mayBeForeign reports whether a string begins like another language's reference.
func mayBeForeign(s string) bool {
	if len(s) < 2 {
		return false
	}
	switch s[0] {
	case '{', '[', '<', '%', '#', '@':
		return true
	case '$':
		return !strings.HasPrefix(s, refPrefix)
	case 'r', 'R':
		return len(s) > 4 && strings.EqualFold(s[:4], "ref:")
	}
	return false
}

// foreignWord returns the length of "ref:", "$ref.", "$ref " or "$REF:" at the beginning of s, in any case.
func foreignWord(s string) int {
	switch {
	case len(s) > 4 && strings.EqualFold(s[:4], "ref:"):
		return 4
	case len(s) > 5 && s[0] == '$' && strings.EqualFold(s[1:4], "ref") && strings.IndexByte(".: ", s[4]) >= 0 && s[:5] != refPrefix:
		return 5
	}
	return 0
}

// foreignSign returns the length of a prefix that s begins with; 0 where it doesn't, and for a single letter.
func foreignSign(s, sign string) int {
	if !strings.HasPrefix(s, sign) || len(sign) == 1 && strings.IndexByte("$#@", sign[0]) < 0 {
		return 0
	}
	return len(sign)
}

// behindSteps reads an id and a path, with or without "steps." before them.
func (p *refParser) behindSteps(s string, known func(id string) bool) (foreign, bool) {
	if rest, ok := strings.CutPrefix(s, stepsPrefix); ok {
		if f, is := p.plain(rest, known); is {
			return f, true
		}
	}
	return p.plain(s, known)
}

const stepsPrefix = "steps."

// plain reads an id and a path, and nothing else.
func (p *refParser) plain(s string, known func(id string) bool) (f foreign, is bool) {
	if s == "" || !subjects.IsPlain(s[0]) {
		return f, false
	}
	r, end, why := p.parse(s, 0)
	if end != len(s) || why != "" || !known(r.id) {
		p.forget(r)
		return f, false
	}
	f = foreign{id: r.id, ref: r.text, digits: allDigits(r.id)}
	for i := range r.path {
		e := &r.path[i]
		f.digits = f.digits && (allDigits(e.key) && e.isKey || !e.isKey && e.index >= hugeIndex)
	}
	p.forget(r)
	return f, true
}

// forget lets go of a reference that was read last.
func (p *refParser) forget(r ref) { p.elems = p.elems[:len(p.elems)-len(r.path)] }

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if !jsontape.IsDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func trimSpace(s string) string { return strings.Trim(s, " \t\r\n") }

func (p *parser) knownStep(id string) bool {
	_, is := p.plan.ids.find(id)
	return is
}

// known reports whether a reference in the value that is walked may name a step or an item by this id.
func (w *walker) known(id string) bool {
	return w.p.knownStep(id) || w.item != "" && id == w.item
}

// foreignString reports a string that is another language's reference. It is an error, and true, unless the step shows
// that it knows how references are written.
func (w *walker) foreignString(text string) bool {
	f, is := w.p.refs.foreign(text, w.known)
	if !is {
		return false
	}
	shown := clip(trimSpace(text))
	hint := w.foreignHint(&f, shown)
	if f.digits || w.refersTo(f.id) {
		w.warn("", fmt.Sprintf("%s is taken as text, not as a reference", shown), hint)
		return false
	}
	w.p.node(w.step).unsure = true
	w.problem(fault.InvalidRef, fmt.Sprintf("%s is no reference: other marks than $ref: mean nothing here", shown), hint)
	return true
}

// foreignHint says how another language's reference is written here.
func (w *walker) foreignHint(f *foreign, shown string) string {
	write := "write " + cmp.Or(w.likely(f.ref, &site{}), `"$ref:<id>.<path>"`)
	if f.marked {
		write = "take the marks away: " + write
	}
	return fmt.Sprintf("%s; for the plain text write {\"$text\": %q}", write, shown)
}

// refersTo reports whether the step in hand holds a right reference to a step or its item, outside of marks.
func (w *walker) refersTo(id string) bool {
	p := w.p
	if p.rightOf != w.step+1 {
		p.rightOf, p.right = w.step+1, map[string]bool{}
		n := p.node(w.step)
		item := ""
		if f := p.plan.Steps[w.step].ForEach; f != nil {
			item = f.As
		}
		if n.in != 0 {
			list := walker{p: p, step: w.step, src: p.src, tape: p.tape}
			list.collect(n.in)
		}
		if n.value != 0 {
			value := walker{p: p, step: w.step, src: p.src, tape: p.tape, item: item, calc: true}
			value.collect(n.value)
		} else if n.arguments != 0 {
			args := walker{p: p, step: w.step, src: p.src, tape: p.tape, root: n.arguments, item: item}
			quiet := parser{src: p.src, tape: p.tape, frame: p.frame} // its problems are reported elsewhere
			if p.tape[n.arguments].Kind != jsontape.String {
				args.collect(n.arguments)
			} else if quiet.innerText(&args, n.arguments) {
				args.collect(0)
			}
		}
	}
	return p.right[id]
}

// collect notes whom the right references within a value refer to.
func (w *walker) collect(n int32) {
	v := &w.tape[n]
	if v.Flags&jsontape.Dollar == 0 && v.Kind != jsontape.Array && v.Kind != jsontape.Object {
		return
	}
	switch v.Kind {
	case jsontape.Array:
		for c := n + 1; c < v.Next; c = w.tape[c].Next {
			w.collect(c)
		}
	case jsontape.Object:
		if key, value, only := w.onlyKey(n); only && w.tape[value].Kind == jsontape.String && v.Flags&jsontape.Dollar != 0 {
			switch key {
			case "$ref":
				w.note(refPrefix + w.text(value))
				return
			case "$text":
				return
			case "$calc":
				if w.calc {
					calcReader{w}.note(w.text(value))
					return
				}
			}
		}
		for k := n + 1; k < v.Next; k = w.tape[k+1].Next {
			w.collect(k + 1)
		}
	case jsontape.String:
		w.note(w.text(n))
	default: // a scalar that is no text refers to nothing
	}
}

// note notes whom a string refers to.
func (w *walker) note(text string) {
	var own refParser
	if !own.mayRefer(text) {
		return
	}
	if _, is := own.foreign(text, w.known); is {
		return
	}
	for _, x := range own.parseText(text).pieces {
		for _, r := range x.refs {
			w.p.right[r.id] = true
		}
	}
}

// onlyKey returns the first key of an object and its value, and whether there is no other.
func (w *walker) onlyKey(n int32) (key string, value int32, only bool) {
	if w.tape[n].Next == n+1 {
		return "", 0, false
	}
	return w.text(n + 1), n + 2, w.tape[n+2].Next == w.tape[n].Next
}
