package plan

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// walker goes through the arguments, the value or the list of one step once, finds the references, and cuts the text into a
// template.
type walker struct {
	p    *parser
	step int
	src  string          // the document that the arguments are part of
	tape []jsontape.Node // of src
	root int32
	list bool   // it is the list of a for_each
	asks bool   // it is the text of a question
	any  bool   // it need not be an object
	item string // the name of the item; empty where there is none
	calc bool   // it is a value, where $calc counts
	// place is where a condition stands, of which nothing is walked: only its references are judged.
	place string

	path  []token
	cut   cutter
	refs  int // found so far
	track bool
	holes []tool.Hole // for the schema, where track is set
	texts []held      // the first reference of each text in them
	size  int         // of their pointers

	// seek, if not 0, turns the walk into a search for the first reference to the step seek-1: its place goes to found,
	// and nothing is reported.
	seek  int
	found string
}

// token is one step of the way from the root to the value in hand.
type token struct {
	index int
	key   string // as it stands in the plan
	made  string // as it stands in the arguments handed to the tool, where escapes are taken out
	isKey bool
}

// compile walks the value and stores its template.
func (w *walker) compile(into *template) {
	p := w.p
	before := w.refs
	w.cut = cutter{src: w.src, from: int(w.tape[w.root].Start), holes: len(p.holes)}
	w.path = p.path[:0]
	w.value(w.root)
	p.path = w.path
	w.cut.copyTo(int(w.tape[w.root].End))
	into.head = w.cut.finish(p)
	into.holes = p.holes[w.cut.holes:len(p.holes):len(p.holes)]
	into.whole = len(into.holes) == 1 && into.head == "" && into.holes[0].after == ""
	if w.refs > MaxRefs && before <= MaxRefs {
		p.col.addf(fault.LimitExceeded, w.rootAt(), "split the step in two, or let a tool collect the values",
			"the step holds %d references, at most %d are allowed", w.refs, MaxRefs)
	}
}

// needsHoles reports whether a schema will be asked about this step.
func (w *walker) needsHoles() bool {
	if w.seek != 0 {
		return false
	}
	schema := w.p.schema(w.step)
	return schema != nil && !schema.AcceptsAnyObject()
}

// value walks one value.
func (w *walker) value(n int32) {
	v := &w.tape[n]
	switch v.Kind {
	case jsontape.String:
		if v.Flags&(jsontape.Dollar|jsontape.Escaped) != 0 || w.suspicious(v) {
			w.str(n)
		}
	case jsontape.Array:
		w.path = append(w.path, token{})
		top := len(w.path) - 1
		for c := n + 1; c < v.Next; c = w.tape[c].Next {
			w.value(c)
			w.path[top].index++
		}
		w.path = w.path[:top]
	case jsontape.Object:
		if v.Flags&jsontape.Dollar == 0 || !w.textForm(n) && !w.objectForm(n) && !(calcReader{w}).form(n) {
			w.object(n)
		}
	default: // a scalar that is no text refers to nothing
	}
}

func (w *walker) object(n int32) {
	end := w.tape[n].Next
	w.path = append(w.path, token{isKey: true})
	top := len(w.path) - 1
	for k := n + 1; k < end; k = w.tape[k+1].Next {
		v := &w.tape[k+1]
		if w.tape[k].Flags&jsontape.Dollar != 0 {
			w.key(k, top)
		} else if v.Kind == jsontape.Object || v.Kind == jsontape.Array || v.Kind == jsontape.String {
			key := w.text(k)
			w.path[top].key, w.path[top].made = key, key
		}
		w.value(k + 1)
	}
	w.path = w.path[:top]
}

// text returns the text of a string node.
func (w *walker) text(n int32) string {
	v := &w.tape[n]
	raw := w.src[v.Start+1 : v.End-1]
	if v.Flags&jsontape.Escaped == 0 {
		return raw
	}
	return string(jsontape.AppendUnescaped(nil, raw))
}

// key reads a key with a "$" in it: escapes are taken out, references are refused (rule 5).
func (w *walker) key(n int32, top int) {
	key := w.text(n)
	made, refers := w.p.refs.keyText(key)
	if n := dollars(key); w.calc && n > 1 && key[n:] == "calc" {
		made = key[1:]
	}
	w.path[top].key, w.path[top].made = key, made
	switch {
	case refers:
		w.problem(fault.InvalidRef, fmt.Sprintf("a key can't hold a reference: %s", clip(key)), "put references into values; for the plain text write the $ twice")
	case made != key:
		v := &w.tape[n]
		w.cut.copyTo(int(v.Start) + 1)
		w.cut.literal(string(jsontape.AppendEscaped(nil, made)))
		w.cut.skipTo(int(v.End) - 1)
	}
}

// objectForm reads {"$ref": "a.city"} (rule 5). It reports false where the object has no such key.
func (w *walker) objectForm(n int32) bool {
	if !w.hasRefKey(n) {
		return false
	}
	end := w.tape[n].Next
	const form = `write {"$ref": "<id>.<path>"} and nothing else in the object; for a plain key write "$$ref"`
	value := n + 2
	switch {
	case w.tape[value].Next != end:
		w.problem(fault.InvalidRef, `an object with the key "$ref" can't have other keys`, form)
		w.object(n) // what else is wrong within
	case w.tape[value].Kind != jsontape.String:
		w.problem(fault.InvalidRef, `the value of "$ref" must be a string, but is `+w.tape[value].Kind.String(), form)
	default:
		text := w.text(value)
		r, stop, why := w.p.refs.parse(text, 0)
		found := piece{refs: w.p.refs.one(r)}
		if why != "" || stop != len(text) {
			found = broken(text, 0, stop, why)
			if strings.HasPrefix(text, refPrefix) {
				found.broken.hint, found.broken.good = w.unprefixed(text[len(refPrefix):]), ""
			}
		}
		w.replace(n, found, "/$ref")
		return true
	}
	w.hole(false)
	return true
}

// hasRefKey reports whether an object has the key "$ref".
func (w *walker) hasRefKey(n int32) bool {
	for k := n + 1; k < w.tape[n].Next; k = w.tape[k+1].Next {
		if w.tape[k].Flags&jsontape.Dollar != 0 && w.text(k) == "$ref" {
			return true
		}
	}
	return false
}

// textForm reads {"$text": "{{a.x}}"}, which is that string and nothing else (rule 9). It reports false where the
// object is anything else.
func (w *walker) textForm(n int32) bool {
	key, value, only := w.onlyKey(n)
	if only && key == "$text" && w.tape[value].Kind == jsontape.String {
		at, text := &w.tape[n], &w.tape[value]
		if n == w.root && !w.list && !w.calc && !w.asks && !w.any {
			w.problem(fault.InvalidArguments, "arguments must be an object, but this is a text", `write "arguments": {"name": {"$text": "…"}}`)
		}
		w.cut.copyTo(int(at.Start))
		w.cut.skipTo(int(text.Start))
		w.cut.copyTo(int(text.End))
		w.cut.skipTo(int(at.End))
		return true
	}
	for k := n + 1; k < w.tape[n].Next; k = w.tape[k+1].Next {
		if w.tape[k].Flags&jsontape.Dollar != 0 && w.text(k) == "$text" {
			w.warn("/$text", `an object with "$text" and anything else than one string is data`,
				`for a plain text write {"$text": "…"} and nothing else in the object; for the key write "$$text"`)
			break
		}
	}
	return false
}

// suspicious reports whether a string without "$" and escapes has to be looked into all the same.
func (w *walker) suspicious(v *jsontape.Node) bool {
	for _, c := range []byte(w.src[v.Start+1 : v.End-1]) {
		if suspects[c] {
			return true
		}
	}
	return false
}

// str reads a string that may hold references, or what looks like some.
func (w *walker) str(n int32) {
	text := w.text(n)
	if w.seek == 0 && w.foreignString(text) {
		w.replace(n, piece{}, "")
		return
	}
	if !w.p.refs.mayRefer(text) {
		if w.seek == 0 {
			w.within(text, nil)
		}
		return
	}
	v := w.p.refs.parseText(text)
	if v.whole {
		w.replace(n, v.pieces[0], "")
		return
	}
	if w.seek == 0 {
		w.within(text, v.pieces)
	}
	w.template(n, v.pieces)
}

// replace puts a hole in place of a whole value.
func (w *walker) replace(n int32, found piece, below string) {
	w.hole(false)
	at := &w.tape[n]
	w.cut.copyTo(int(at.Start))
	w.reference(found, false, below)
	w.cut.skipTo(int(at.End))
}

// template puts holes into a string. The text between them keeps its bytes, unless the string has escapes of JSON: then
// it is escaped anew.
func (w *walker) template(n int32, pieces []piece) {
	v := &w.tape[n]
	inside := int(v.Start) + 1
	raw := v.Flags&jsontape.Escaped == 0
	w.cut.copyTo(inside)
	held := false
	for _, x := range pieces {
		switch {
		case x.broken != nil || len(x.refs) > 0:
			held = true
			w.reference(x, true, "")
		case raw:
			w.cut.skipTo(inside + x.from)
			w.cut.copyTo(inside + x.from + len(x.text))
		default:
			w.cut.literal(string(jsontape.AppendEscaped(nil, x.text)))
		}
	}
	if held {
		w.hole(true)
		w.remember(pieces)
	}
	w.cut.skipTo(int(v.End) - 1)
}

// reference resolves the steps of a reference, and cuts a hole for it.
func (w *walker) reference(x piece, text bool, below string) {
	p := w.p
	if x.broken != nil {
		p.node(w.step).unsure = true
		w.brokenRef(x.broken, below)
		if w.seek == 0 { // the schema still checks what is around it
			w.cut.hole(p, hole{text: text})
		}
		return
	}
	first, refused := len(p.targets), false
	for _, r := range x.refs {
		w.refs++
		if r.pathLength() > MaxPath {
			w.problemAt(below, fault.LimitExceeded, fmt.Sprintf("the path of the reference has %d bytes, at most %d are allowed", r.pathLength(), MaxPath), "")
		}
		if r.of.isWord() {
			p.targets = append(p.targets, target{theInput, r.of, r.path, r.text})
			w.takesWord(r.of)
			caller{p}.input(&p.targets[len(p.targets)-1], func() string { return w.pointer() + below })
			continue
		}
		if w.item != "" && r.id == w.item { // never so while seeking: the plan has cycles, and items are no part of them
			if bad := itemEnds(r); bad != nil {
				w.brokenRef(bad, below)
			}
			p.targets = append(p.targets, target{theItem, r.of, r.path, r.text})
			continue
		}
		dep, known := p.plan.ids.find(r.id)
		if !known {
			w.unknown(r, text, below)
			continue
		}
		if w.seek != 0 {
			if w.found == "" && int(dep) == w.seek-1 {
				w.found = w.pointer() + below
			}
			continue
		}
		if r.of == itsResult && p.plan.Steps[dep].ForEach != nil {
			refused = w.entry(r, int(dep), site{text: text, object: below != ""}, below) || refused
		}
		p.depend(w.step, int(dep), func() string { return w.pointer() + below })
		p.targets = append(p.targets, target{int(dep), r.of, r.path, r.text})
		p.second = p.second || r.of != itsResult
	}
	if w.seek == 0 {
		h := hole{targets: p.targets[first:len(p.targets):len(p.targets)], def: x.def, text: text}
		w.cut.hole(p, h)
		w.keep(&h, below)
		if len(h.targets) == 1 && len(x.refs) == 1 && x.def == "" && !refused && h.targets[0].of == itsResult {
			w.typed(&h.targets[0], site{text: text, object: below != ""}, below)
		}
	}
}

// itemEnds says what is wrong with a reference to how an item ended; nil for one to the item itself.
func itemEnds(r ref) *mistake {
	if r.of == itsResult {
		return nil
	}
	return &mistake{
		why:  fmt.Sprintf("%s%s: %q is the item of the for_each, which ends in no way", r.of.prefix(), clip(r.text), r.id),
		hint: "name a step, or refer to the item itself: " + refPrefix + clip(r.text),
	}
}

// takesWord notes that the step refers to the input of its plan, or to the iteration before, which may hold anything.
func (w *walker) takesWord(of aspect) {
	w.p.node(w.step).unsure = true
	s := &w.p.plan.Steps[w.step]
	s.TakesInput = s.TakesInput || of == itsInput
	s.TakesLast = s.TakesLast || of == itsLast
}

// brokenRef reports what is no reference.
func (w *walker) brokenRef(x *mistake, below string) {
	if w.seek != 0 || !w.p.col.wants(fault.InvalidRef) {
		return
	}
	hint := x.hint
	if x.good != "" && w.list { // there is no text in the place of a list
		_, hint, _ = strings.Cut(hint, "; ")
	} else if x.good != "" {
		hint = fmt.Sprintf(hint, w.inText(x.good))
	}
	w.p.col.add(fault.InvalidRef, w.pointer()+below, x.why, hint)
}

// unknown reports a reference to no step.
func (w *walker) unknown(r ref, text bool, below string) {
	w.p.node(w.step).unsure = true
	if w.seek != 0 || !w.p.col.wants(fault.UnknownRef) {
		return
	}
	w.p.col.add(fault.UnknownRef, w.pointer()+below, fmt.Sprintf("there is no step %q", r.id), w.unknownHint(r, text, below))
}

// warn reports what is odd but harmless.
func (w *walker) warn(below, message, hint string) {
	if w.seek == 0 && w.p.col.wantsWarning() {
		w.p.col.warn(fault.InvalidRef, w.pointer()+below, message, hint)
	}
}

func (w *walker) problem(code fault.Code, message, hint string) { w.problemAt("", code, message, hint) }

func (w *walker) problemAt(below string, code fault.Code, message, hint string) {
	if w.seek == 0 && w.p.col.wants(code) {
		w.p.col.add(code, w.pointer()+below, message, hint)
	}
}

// rootAt returns the place of the value that is walked, in the plan.
func (w *walker) rootAt() string {
	switch {
	case w.place != "":
		return w.place
	case w.list:
		return w.p.listAt(w.step).String()
	case w.calc:
		return w.p.below(w.p.stepAt(w.step), w.p.node(w.step).value).String()
	}
	if w.asks {
		return w.p.questionAt(w.step)
	}
	return w.p.argumentsAt(w.step)
}

// pointer returns the place of the value in hand, in the plan.
func (w *walker) pointer() string {
	b := []byte(w.rootAt())
	for _, t := range w.path {
		if t.isKey {
			b = jsontape.AppendToken(b, t.key)
		} else {
			b = jsontape.AppendIndex(b, t.index)
		}
	}
	return string(b)
}
