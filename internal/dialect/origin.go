package dialect

import (
	"github.com/stepjet/stepjet/fault"
)

// sources are where a value may come from.
type sources struct {
	origins  []origin // the first that has something counts
	constant []byte   // JSON in their place where none has; nil for null
}

// orNull returns a constant as JSON.
func orNull(constant []byte) []byte {
	if constant == nil {
		return []byte("null")
	}
	return constant
}

// sources finds where the value of a reference, or of alternatives, may come from. It reports false where there is a
// problem.
func (w *stepWriter) sources(operands []operand, at string) (s sources, ok bool) {
	ok = true
	for _, o := range operands {
		switch {
		case s.constant != nil: // nothing behind it is ever looked at, but it has to be right
			_, fine := w.source(o, at)
			ok = ok && fine
		default:
			more, fine := w.source(o, at)
			ok = ok && fine
			s.origins, s.constant = append(s.origins, more.origins...), more.constant
		}
	}
	return s, ok
}

// source finds where the value of one reference may come from.
func (w *stepWriter) source(o operand, at string) (s sources, ok bool) {
	switch {
	case o.literal != "":
		return sources{constant: []byte(o.literal)}, true
	case o.ref.of == ofInput:
		n := w.constant(w.input, o.ref.path)
		switch {
		case n != 0:
			s.constant = w.raw(n)
		case !w.isNull(w.input, o.ref.path):
			w.unknown(at, o.ref)
			return s, false
		}
		return s, true
	}
	r, ok := w.read(w.in, o.ref.path)
	switch {
	case !ok:
		w.unknown(at, o.ref)
		return s, false
	case r.parts:
		w.lacks(at, o.ref.String()+" is written in parts, and can't be read as a whole yet", "read each part by itself")
		return s, false
	}
	for _, from := range r.origins {
		if from.fails {
			w.named[from.call] = true
		}
		if from.fails && !knownOfError(from.rest) {
			w.add(fault.UnknownRef, at, "an error has code, message and details", "there is no %s in an error", clip(from.rest.String()))
			return s, false
		}
	}
	s.origins = r.origins
	if r.initial != 0 {
		s.constant = w.raw(r.initial)
	}
	return s, true
}

// knownOfError reports whether a path leads to something that errors have.
func knownOfError(p path) bool {
	return len(p) == 0 || plainError(p) && (p[0].key == "details" || len(p) == 1) || len(p) == 1 && p[0].key == "code"
}
