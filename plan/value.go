package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// How a step with a value is read (plan language, "Values").

// valueReader reads the value of a step.
type valueReader struct{ *parser }

// form makes sure that nothing stands beside a value that is for other steps.
func (p valueReader) form(i int, m *members) {
	p.plan.Steps[i].Value, p.second = true, true
	at := p.stepAt(i)
	if n := m[stepTool]; n != 0 {
		p.invalid(p.below(at, n), p.bothHint(n, m), "a step calls a tool or is a value, and this one says both")
	}
	inlineReader(p).beside(i, m, stepValue)
	for _, field := range [...]int{stepArguments, stepTimeout, stepRetry, stepApproval, stepPlan, stepRepeat} {
		if n := m[field]; n != 0 {
			p.invalid(p.below(at, n), "leave it out: a value calls nothing, and what it is made of stands in it",
				fmt.Sprintf("%q means nothing beside \"value\"", stepLevel.fields[field]))
		}
	}
}

// bothHint says what is probably meant where a step has a tool and a value.
func (p valueReader) bothHint(n int32, m *members) string {
	if p.catalog != nil && p.tape[n].Kind == jsontape.String && m[stepArguments] == 0 {
		t, _ := p.lookup(p.str(n))
		there := t.Input.Find([]tool.Elem{{Key: "value", IsKey: true, Index: noIndex}})
		if !t.Input.AcceptsAnyObject() && !there.Impossible && !there.Undeclared {
			return `if it is an argument, write "arguments": {` + p.written("value", m[stepValue]) + "}"
		}
	}
	return `leave out "tool" or "value"; a step of its own may compute what the tool is given`
}

// read reads the value of a step, once all ids are known. refs is the number of references that the step has elsewhere.
func (p valueReader) read(i int, n int32, refs int) {
	s := &p.plan.Steps[i]
	w := walker{p: p.parser, step: i, src: p.src, tape: p.tape, root: n, refs: refs, calc: true}
	if s.ForEach != nil {
		w.item = s.ForEach.As
	}
	w.compile(&s.args)
	s.args.compact()
	s.HasRefs = len(s.args.holes) > 0
}

// compact takes the white space of the plan out of a template: a value is a result, which may stand on one line.
func (t *template) compact() {
	quoted := false
	strip := func(text string) string {
		if !strings.ContainsAny(text, " \t\r\n\"") {
			return text
		}
		b := make([]byte, 0, len(text))
		for i := 0; i < len(text); i++ {
			c := text[i]
			switch {
			case c == '"':
				quoted = !quoted
			case c == '\\':
				b = append(b, c)
				i++
				c = text[i]
			case !quoted && jsontape.IsSpace(c):
				continue
			}
			b = append(b, c)
		}
		return string(b)
	}
	t.head = strip(t.head)
	for i := range t.holes {
		t.holes[i].after = strip(t.holes[i].after)
	}
}

// calcReader reads the calculations that a walker comes by.
type calcReader struct{ *walker }

// form reads {"$calc": "$ref:a.x * 2"}, which is what the expression comes to. It reports false where the object is
// anything else.
func (w calcReader) form(n int32) bool {
	key, value, only := w.onlyKey(n)
	if only && w.calc && key == "$calc" {
		w.read(n, value)
		return true
	}
	if of := slices.Index([]string{"", "$error", "$status"}, key); only && of > 0 && w.tape[value].Kind == jsontape.String {
		if id := w.text(value); w.known(idIn(id)) {
			w.warn("/"+key, fmt.Sprintf("an object with %q is data: there is no object form of it", key),
				"write "+quoteJSON(aspect(of).prefix()+clip(id)))
		}
		return false
	}
	for k := n + 1; k < w.tape[n].Next; k = w.tape[k+1].Next {
		if w.tape[k].Flags&jsontape.Dollar == 0 || w.text(k) != "$calc" {
			continue
		}
		if w.calc {
			w.warn("/$calc", `an object with "$calc" and other keys is data: nothing is computed`,
				`to compute write {"$calc": "…"} and nothing else in the object; for the key write "$$calc"`)
		} else {
			w.warn("/$calc", `"$calc" counts only in the "value" of a step: here it is data`, w.hint(w.shown(k+1)))
		}
		break
	}
	return false
}

// shown returns a string of the document, and nothing for what is none.
func (w calcReader) shown(n int32) string {
	if w.tape[n].Kind != jsontape.String {
		return "…"
	}
	return w.text(n)
}

// hint says how an expression is computed.
func (w calcReader) hint(text string) string {
	if _, err := expression.Compile(text, w.p.refs.reads); err != nil {
		text = "…"
	}
	calc := `{"$calc": ` + quoteJSON(clip(text)) + "}"
	if w.calc {
		return "to compute write " + calc
	}
	return fmt.Sprintf(`let a step compute it, {"id": "…", "value": %s}, and refer to that`, calc)
}

// read cuts a hole for what an expression comes to.
func (w calcReader) read(n, value int32) {
	if w.tape[value].Kind != jsontape.String {
		w.problemAt("/$calc", fault.InvalidValue, "must be an expression, written as a string, but is "+w.tape[value].Kind.String(), w.plainHint(value))
		return
	}
	if w.seek != 0 {
		w.seekIn(w.text(value))
		return
	}
	p, own := w.p, *w.walker // a copy, so that a walker that comes by none need not be in the heap
	r := expressionReader{parser: p, step: w.step, at: func() string { return own.pointer() + "/$calc" }, walker: &own}
	x, targets := r.compile(w.text(value))
	w.refs += max(1, len(targets)) // one that refers to nothing is work all the same
	h := hole{targets: targets}
	if x != nil {
		p.plan.calcs = append(p.plan.calcs, x)
		h.calc = int32(len(p.plan.calcs))
	} else {
		p.node(w.step).unsure = true
	}
	at := &w.tape[n]
	w.cut.copyTo(int(at.Start))
	w.cut.hole(p, h)
	w.cut.skipTo(int(at.End))
}

// plainHint says how what is no expression is written.
func (w calcReader) plainHint(value int32) string {
	v := &w.tape[value]
	switch raw := w.src[v.Start:v.End]; v.Kind {
	case jsontape.Object, jsontape.Array:
		return `write {"$calc": "sum($ref:a.prices) * 2"}; a value that is not computed stands there as it is`
	case jsontape.Null:
		return "write null as it is"
	default:
		return fmt.Sprintf("write %s as it is, or \"%[1]s\" in an expression", clip(raw))
	}
}

// note notes whom the references of an expression refer to.
func (w calcReader) note(text string) {
	own := refParser{input: w.p.refs.input, turn: w.p.refs.turn}
	x, err := expression.Compile(text, own.reads)
	if err != nil {
		return
	}
	for _, written := range x.References() {
		_, start := own.prefixOf(written)
		to, _, _ := own.parse(written, start)
		w.p.right[to.id] = true
	}
}

// seekIn looks for the step that is sought in an expression.
func (w calcReader) seekIn(text string) {
	x, err := expression.Compile(text, w.p.refs.reads)
	if err != nil {
		return
	}
	for _, written := range x.References() {
		_, start := w.p.refs.prefixOf(written)
		to, _, _ := w.p.refs.parse(written, start)
		if dep, known := w.p.plan.ids.find(to.id); known && int(dep) == w.seek-1 && w.found == "" {
			w.found = w.pointer() + "/$calc"
		}
	}
}
