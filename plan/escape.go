package plan

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Escape returns arguments that mean exactly a JSON object, whatever texts in it look like references and whatever
// steps the plan has: what Arguments makes of them is that object again (plan language, rules 4, 5, 9 and 10). All that
// needs no escape keeps its bytes; the object itself is given back where nothing needs one.
//
// Errors: malformed_json for what is no JSON or deeper than arguments may be (MaxDepth less the plan around them),
// duplicate_key, invalid_utf8, and invalid_arguments for what is no object.
func Escape(json []byte) ([]byte, error) {
	s := jsontape.New(json, MaxDepth-aroundArguments)
	defer s.Release()
	s.Record = true
	if err := s.Scan(); err != nil {
		return nil, fault.New(fault.MalformedJSON, "no JSON that arguments can be, at byte %d: %s", err.At, err.Message)
	}
	switch {
	case s.First != "":
		return nil, fault.New(s.First, "the object can't be arguments: %s at %q", s.First, clip(s.Where))
	case s.Tape[0].Kind != jsontape.Object:
		return nil, fault.New(fault.InvalidArguments, "arguments are an object, but this is %s", s.Tape[0].Kind)
	}
	e := escaper{src: json, tape: s.Tape}
	e.value(0, 1)
	if e.deepest > s.Limit {
		return nil, fault.New(fault.MalformedJSON, "the object is nested too deep to be written as arguments").WithHint("flatten it")
	}
	if e.out == nil {
		return json, nil
	}
	return append(e.out, json[e.from:]...), nil
}

// escaper copies a JSON text and writes strings anew that need an escape.
type escaper struct {
	src  []byte
	tape []jsontape.Node
	out  []byte
	from int // what of the source is not in out yet

	deepest int // object that was put around a string
	refs    refParser
}

// value goes through a value that would be nested so deep if it had parts.
func (e *escaper) value(n int32, depth int) {
	v := &e.tape[n]
	switch v.Kind {
	case jsontape.String:
		if !e.verbatim(n, depth) {
			e.text(n, escapeText)
		}
	case jsontape.Array:
		for c := n + 1; c < v.Next; c = e.tape[c].Next {
			e.value(c, depth+1)
		}
	case jsontape.Object:
		for k := n + 1; k < v.Next; k = e.tape[k+1].Next {
			e.text(k, escapeKey)
			e.value(k+1, depth+1)
		}
	default: // a scalar that is no text is as it is
	}
}

// verbatim writes {"$text": …} for a string that would be another language's reference, were there such a step, and for
// one that holds a reference of language 2: an orchestrator of before would leave the doubled dollars of an escape.
func (e *escaper) verbatim(n int32, depth int) bool {
	v := &e.tape[n]
	text := v.Inside().Text(e.src)
	if f, is := e.refs.foreign(text, func(string) bool { return true }); (!is || f.digits) && !e.refs.ofLanguage2(text) {
		return false
	}
	e.out = append(append(e.out, e.src[e.from:v.Start]...), `{"$text":`...)
	e.out = append(append(e.out, e.src[v.Start:v.End]...), '}')
	e.from = int(v.End)
	e.deepest = max(e.deepest, depth)
	return true
}

func (e *escaper) text(n int32, escape func(string) string) {
	v := &e.tape[n]
	if v.Flags&jsontape.Dollar == 0 {
		return
	}
	inside := v.Inside()
	text := inside.Text(e.src)
	if better := escape(text); better != text {
		e.out = append(e.out, e.src[e.from:inside.Start]...)
		e.out = jsontape.AppendEscaped(e.out, better)
		e.from = int(inside.End)
	}
}

// escapeKey returns the key that stands for s in arguments.
func escapeKey(s string) string {
	if n := dollars(s); n > 0 && (s[n:] == "ref" || s[n:] == "text") {
		return "$" + s
	}
	return escapeText(s)
}

// escapeText returns the text that stands for s in arguments: dollars that end in a reference are doubled.
func escapeText(s string) string {
	var p refParser
	if !p.mayRefer(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := dollars(s[i:])
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(s[i : i+n])
		if openingAt(s[i+n:]) != nil {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
