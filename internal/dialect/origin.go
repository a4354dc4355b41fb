package dialect

// origin is a step of the compiled plan that a value may come from: what lies behind rest of its result.
type origin struct {
	step   string // its id
	rest   path
	unsure bool // its result may be null where nobody wrote
}

// sources are where a value may come from.
type sources struct {
	origins  []origin // the first that has something counts
	constant []byte   // JSON in their place where none has; nil for null
	ended    bool     // the last of the origins always has something
	// skips says that a step of its own, which comes to the first that has something, is skipped where all failed, though
	// the constant would stand in for them: else it would have handled that.
	skips bool
}

// sure reports whether there is something in any case.
func (s sources) sure() bool { return s.constant != nil || s.ended }

// fewOrigins are named in place; more of them come together in a step of their own, since expressions are bounded.
const fewOrigins = 20

// scalar reports whether the constant can stand within an expression or at the end of alternatives.
func (s sources) scalar() bool {
	return len(s.constant) == 0 || s.constant[0] != '{' && s.constant[0] != '['
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
		more, fine := w.source(o, at)
		if ok = ok && fine; !s.sure() { // nothing behind it is ever looked at, but it has to be right
			s.origins, s.constant, s.ended = append(s.origins, more.origins...), more.constant, more.ended
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
	if s, ok = w.stateAt(view{call: w.in}, o.ref.path); !ok {
		w.unknown(at, o.ref)
	} else {
		blueprint{w.compiler}.checkRead(at, o.ref.path)
	}
	return s, ok
}
