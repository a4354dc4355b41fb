package plan

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Escape gives arguments that mean exactly a JSON object, whatever texts in it look like references and whatever steps the
// plan has: what Arguments makes of them is that object again (plan language, rules 4, 5, 9 and 10). All that needs no
// escape keeps its bytes; the object itself is given back where nothing needs one.
//
// Errors: malformed_json for what is no JSON or deeper than arguments may be (MaxDepth less the plan around them),
// duplicate_key, invalid_utf8, and invalid_arguments for what is no object.
func Escape(json []byte) ([]byte, error) {
	s := newScanner(json)
	defer s.release()
	s.record, s.limit = true, MaxDepth-argumentsDepth
	if err := s.document(); err != nil {
		return nil, fault.New(fault.MalformedJSON, "no JSON that arguments can be, at byte %d: %s", err.at, err.message)
	}
	switch {
	case s.first != "":
		return nil, fault.New(s.first, "the object can't be arguments: %s at %q", s.first, clip(s.where))
	case s.tape[0].kind != kObject:
		return nil, fault.New(fault.InvalidArguments, "arguments are an object, but this is %s", s.tape[0].kind)
	}
	e := escaper{src: json, tape: s.tape}
	e.value(0, 1)
	if e.deepest > s.limit {
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
	tape []node
	out  []byte
	from int // what of the source is not in out yet

	deepest int // object that was put around a string
	refs    refParser
}

// value goes through a value that would be nested so deep if it had parts.
func (e *escaper) value(n int32, depth int) {
	v := &e.tape[n]
	switch v.kind {
	case kString:
		if !e.verbatim(n, depth) {
			e.text(n, escapeText)
		}
	case kArray:
		for c := n + 1; c < v.next; c = e.tape[c].next {
			e.value(c, depth+1)
		}
	case kObject:
		for k := n + 1; k < v.next; k = e.tape[k+1].next {
			e.text(k, escapeKey)
			e.value(k+1, depth+1)
		}
	}
}

// verbatim writes {"$text": …} for a string that would be another language's reference, were there such a step.
func (e *escaper) verbatim(n int32, depth int) bool {
	v := &e.tape[n]
	text := spanText(e.src, span{v.start + 1, v.end - 1, v.flags})
	if f, is := e.refs.foreign(text, func(string) bool { return true }); !is || f.digits {
		return false
	}
	e.out = append(append(e.out, e.src[e.from:v.start]...), `{"$text":`...)
	e.out = append(append(e.out, e.src[v.start:v.end]...), '}')
	e.from = int(v.end)
	e.deepest = max(e.deepest, depth)
	return true
}

func (e *escaper) text(n int32, escape func(string) string) {
	v := &e.tape[n]
	if v.flags&fDollar == 0 {
		return
	}
	inside := span{v.start + 1, v.end - 1, v.flags}
	text := spanText(e.src, inside)
	if better := escape(text); better != text {
		e.out = append(e.out, e.src[e.from:inside.start]...)
		e.out = appendEscaped(e.out, better)
		e.from = int(inside.end)
	}
}

// escapeKey gives the key that stands for s in arguments.
func escapeKey(s string) string {
	if n := dollars(s); n > 0 && (s[n:] == "ref" || s[n:] == "text") {
		return "$" + s
	}
	return escapeText(s)
}

// escapeText gives the text that stands for s in arguments: dollars that end in a reference are doubled.
func escapeText(s string) string {
	if !mayRefer(s) {
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
		if rest := s[i+n:]; strings.HasPrefix(rest, "ref:") || strings.HasPrefix(rest, "{ref:") {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
