package dialect

import (
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// stepWriter writes the step of one call.
type stepWriter struct {
	*compiler
	call   *call
	reads  []sources       // what has to be there for it to be taken
	guards []string        // what its condition asks for that
	output bool            // it is no call, but the output: what nobody wrote is null in it
	named  map[string]bool // calls whose error or status its condition names: their failure doesn't skip it
}

// arguments returns the arguments of the step.
func (w *stepWriter) arguments() []byte {
	out := []byte{'{'}
	if w.call.node == 0 {
		return append(out, '}')
	}
	if scopes := w.call.meta[metaScopes]; scopes != 0 {
		w.eachMember(scopes, func(key string, value int32) {
			out = w.put(out, key, value, w.call.at+"/_scopes"+string(jsontape.AppendToken(nil, key)))
		})
		return append(out, '}')
	}
	w.eachMember(w.call.node, func(key string, value int32) {
		name, escaped := strings.CutPrefix(key, "__")
		switch {
		case escaped:
			key = "_" + name
		case strings.HasPrefix(key, "_"):
			return
		}
		at := w.call.at + string(jsontape.AppendToken(nil, w.str(value-1)))
		out = w.put(out, key, value, at)
	})
	return append(out, '}')
}

// put appends a member of an object.
func (w *stepWriter) put(out []byte, key string, value int32, at string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	if w.refersIn(key) {
		w.add(fault.InvalidRef, at, "a key is written as it is; let a call make the object", "a key can't hold a reference: %s", clip(quoted(key)))
	}
	out = append(jsontape.AppendQuoted(out, key), ':')
	return w.value(out, value, at)
}

// refersIn reports whether a text that can't be a reference holds one.
func (w *stepWriter) refersIn(s string) bool {
	if !mayRefer(s) {
		return false
	}
	v, m := parseText(s)
	return m != nil || v.refers() || v.foreign()
}

// value appends a value of the arguments.
func (w *stepWriter) value(out []byte, n int32, at string) []byte {
	switch v := w.tape[n]; v.Kind {
	case jsontape.String:
		return w.text(out, n, at)
	case jsontape.Array:
		out = append(out, '[')
		i := 0
		w.eachItem(n, func(item int32) {
			if i > 0 {
				out = append(out, ',')
			}
			out = w.value(out, item, at+"/"+strconv.Itoa(i))
			i++
		})
		return append(out, ']')
	case jsontape.Object:
		if w.isVerbatim(n) {
			return append(out, w.raw(n)...)
		}
		if w.lone(n, "$ref") {
			w.add(fault.InvalidRef, at, `write "†state.name" for what a call wrote`, `{"$ref": …} is a reference of plans with "steps"`)
		}
		if calc := w.member(n, "$calc"); w.lone(n, "$calc") && w.tape[calc].Kind == jsontape.String && mayRefer(w.str(calc)) {
			w.add(fault.InvalidRef, at, "let a call of a tool compute it, and refer to what that wrote",
				"calls calculate nothing: {\"$calc\": …} is for plans with \"steps\"")
			return append(out, "null"...)
		}
		out = append(out, '{')
		w.eachMember(n, func(key string, value int32) {
			at := at + string(jsontape.AppendToken(nil, key))
			out = w.put(out, key, value, at)
		})
		return append(out, '}')
	default:
		return append(out, w.raw(n)...)
	}
}

// isVerbatim reports whether an object is {"$text": "…"}, whose text is not looked into.
func (w *stepWriter) isVerbatim(n int32) bool {
	return w.lone(n, "$text") && w.tape[w.member(n, "$text")].Kind == jsontape.String
}

// lone reports whether an object has one member, of this name.
func (w *stepWriter) lone(n int32, name string) bool {
	value := w.member(n, name)
	return value != 0 && value == n+2 && w.tape[value].Next == w.tape[n].Next
}

// text appends what a string stands for.
func (w *stepWriter) text(out []byte, n int32, at string) []byte {
	s := w.str(n)
	if right := w.marked(s); right != "" {
		w.add(fault.InvalidRef, at, "write "+quoted(right)+"; for the plain text write "+verbatim(s), "%s is no reference, and would be handed to the tool as text", clip(quoted(s)))
		return append(out, "null"...)
	}
	if !mayRefer(s) {
		return append(out, w.raw(n)...)
	}
	v, m := parseText(s)
	switch {
	case m != nil:
		w.add(fault.InvalidRef, at, m.hint, "%s", m.why)
		return append(out, "null"...)
	case v.whole:
		return w.whole(out, &v.pieces[0], at)
	case v.foreign():
		w.add(fault.InvalidRef, at, "write †state.name for what a call wrote, or "+verbatim(s)+" for the text",
			"references of plans with \"steps\" have no meaning beside \"calls\": %s", clip(s))
		return append(out, "null"...)
	case !v.made && !v.refers():
		return append(out, w.raw(n)...)
	}
	return w.template(out, v.pieces, at)
}

// marked returns the reference that a string is for which another language's marks stand, or a dagger by itself; empty
// for any other, and where nobody writes what it refers to.
func (w *stepWriter) marked(s string) string {
	m := inMarks.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	right := dagger + m[1] + m[2]
	r, end, why, ok := refAt(right, 0)
	if !ok || why != "" || end != len(right) || len(r.path) == 0 {
		return ""
	}
	if r.of == ofInput {
		ok = w.constant(w.input, r.path) != 0
	} else {
		_, ok = w.read(&view{call: w.in}, r.path)
	}
	if !ok {
		return ""
	}
	return right
}

// template appends text with references in it.
func (w *stepWriter) template(out []byte, pieces []piece, at string) []byte {
	var b, literal strings.Builder
	refers := false
	for i := range pieces {
		if pieces[i].operands == nil {
			literal.WriteString(pieces[i].text)
			continue
		}
		s, ok := w.sources(pieces[i].operands, at)
		switch {
		case !ok:
			return append(out, "null"...)
		case len(s.origins) == 0:
			literal.WriteString(bare(orNull(s.constant)))
			continue
		}
		s = w.alone(w.reading(s), pieces[i].operands[0].ref.path)
		refers = true
		text := w.EscapeText(literal.String())
		literal.Reset()
		b.WriteString(text)
		b.WriteString(strings.Repeat("$", trailing(text))) // doubled, so that they end no escape
		reference := s.origins[0].reference()
		b.WriteString("${" + strings.TrimPrefix(reference, "$") + "}")
	}
	if !refers {
		return append(jsontape.AppendQuoted(append(out, `{"$text":`...), literal.String()), '}')
	}
	b.WriteString(w.EscapeText(literal.String()))
	return jsontape.AppendQuoted(out, b.String())
}

// reading notes what is read. In the output, null takes the place of what nobody wrote.
func (w *stepWriter) reading(s sources) sources {
	if w.output {
		if !s.sure() {
			s.constant, s.skips = []byte("null"), true
		}
		return s
	}
	if len(s.origins) > fewOrigins {
		s = w.alone(s, nil)
	}
	w.reads = append(w.reads, s)
	return s
}

// trailing returns how many dollars a text ends with.
func trailing(s string) int { return len(s) - len(strings.TrimRight(s, "$")) }

// bare is how a constant stands in text: strings without quotes, null as text, all else as JSON.
func bare(json []byte) string {
	if len(json) > 0 && json[0] == '"' {
		return jsontape.Unquoted(json)
	}
	return string(json)
}

// whole appends what a string that is a reference and nothing else comes to.
func (w *stepWriter) whole(out []byte, p *piece, at string) []byte {
	if p.all && w.output {
		w.add(fault.InvalidRef, at, "write the last one alone", "the output is put together when everything is over, and can't wait by &&")
		return append(out, "null"...)
	}
	if p.all {
		for _, o := range p.operands[:len(p.operands)-1] {
			if s, ok := w.sources([]operand{o}, at); ok && (!s.sure() || len(s.origins) > 0) {
				if s.constant != nil {
					s.constant = []byte("true") // whatever it is: it is waited for the others all the same
				}
				w.guards = append(w.guards, w.there(s))
			}
		}
		p.operands = p.operands[len(p.operands)-1:]
	}
	s, ok := w.sources(p.operands, at)
	if !ok {
		return append(out, "null"...)
	}
	s = w.reading(s)
	if len(s.origins) == 0 {
		return w.escaped(out, orNull(s.constant), at)
	}
	if !s.scalar() {
		s = w.chosen(s, p.operands[0].ref.path)
	}
	return jsontape.AppendQuoted(out, s.alternatives())
}
