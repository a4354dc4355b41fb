package expression

import (
	"github.com/stepjet/stepjet/fault"
)

// Digits is how many significant digits a number that is calculated with has.
const Digits = 34

// Limits of an expression's text. What is beyond them is invalid_condition.
const (
	// MaxText is the longest text, in bytes.
	MaxText = 16 << 10
	// MaxNodes is the most operators, functions, references and literals.
	MaxNodes = 200
	// MaxMatches is the most uses of matches.
	MaxMatches = 8
	// MaxPattern is the longest pattern of matches, in bytes.
	MaxPattern = 256
	// MaxNumber is the longest number, in bytes, in the text or in what it refers to.
	MaxNumber = 1000
	// MaxExponent bounds numbers: but for 0 they lie between 10^-6144 and 10^6144.
	MaxExponent = 6144
)

// Limits bound what one evaluation reads of the values it refers to. Each reference counts once, when something of its
// value is needed: whether it is null can be told without reading.
type Limits struct {
	Bytes    int // of JSON
	Elements int // items of arrays and members of objects, at any depth
	// Work is what is left for several evaluations together, in units of about five nanoseconds; each takes its part of
	// it, and what would take more than is left fails with less than 0 left. nil leaves each to its own bound.
	Work *int
}

// The limits of each kind of use.
var (
	ConditionLimits = Limits{Bytes: 64 << 10, Elements: 1_000}
	ValueLimits     = Limits{Bytes: 1 << 20, Elements: 10_000}
)

// Reader tells where a reference that begins at s[i:] ends, its "$" included, as the plan language reads it: at the
// latest before an operator. It returns 0 where none begins there. why is set where one begins that is broken.
type Reader func(s string, i int) (end int, why string)

// Get returns the JSON of reference i of References, which was checked when it was recorded. ok is false where there is
// nothing, which is null. It is asked at most once for each reference of an evaluation, and not for those whose value
// does not matter. The bytes must never change: a result may be a part of them.
type Get func(i int) (json []byte, ok bool)

// Expression is a compiled text. It never changes, and any number of goroutines may evaluate it at once.
type Expression struct {
	text string
	refs []usedRef
	uses []Use
	at   places
	root node
}

// usedRef is a reference of an expression.
type usedRef struct {
	text string
}

// Compile reads a text. Its errors are invalid_condition; they name the byte, counted from 0, where the text is wrong,
// and have a hint that says what to write instead.
func Compile(text string, refs Reader) (*Expression, *fault.Error) {
	s := scanner{text: text, read: refs}
	if err := s.scan(); err != nil {
		return nil, err
	}
	root, err := s.tree()
	if err != nil {
		return nil, err
	}
	return &Expression{text: text, refs: s.refs, uses: usesOf(nil, root), at: placesOf(root, len(s.refs)), root: root}, nil
}

// Text returns what was compiled.
func (x *Expression) Text() string { return x.text }

// References returns each reference once, as it is written from its "$" to its end, in the order in which they first
// stand in the text.
func (x *Expression) References() []string {
	all := make([]string, len(x.refs))
	for i := range x.refs {
		all[i] = x.refs[i].text
	}
	return all
}

// Value evaluates the expression and returns its result as JSON: "null" for null, a reference that is handed on as it
// is byte for byte. Its errors are condition_failed: operands of wrong types, a division by zero, a number out of
// range, more read than the limits allow, a result that is longer than Limits.Bytes.
func (x *Expression) Value(get Get, l Limits) ([]byte, *fault.Error) {
	e := x.evaluation(get, l)
	v, err := x.root.eval(e)
	if err != nil {
		return nil, err
	}
	return e.result(v)
}

// True evaluates the expression as a condition. null is false. An expression that is one reference and nothing else is
// true unless its value is null, false, 0, "", [] or {}, however large that is. Any other result that is no boolean is
// condition_failed, as are the errors of Value.
func (x *Expression) True(get Get, l Limits) (bool, *fault.Error) {
	holds, _, err := x.Decided(get, l)
	return holds, err
}

// Decided is True, and tells null from false: known is false where the condition came to null.
func (x *Expression) Decided(get Get, l Limits) (holds, known bool, err *fault.Error) {
	e := x.evaluation(get, l)
	v, err := x.root.eval(e)
	if err != nil {
		return false, false, err
	}
	_, lone := x.root.(*reference)
	switch {
	case v.kind == null || v.kind == boolean:
		return v.yes, v.kind != null, nil
	case lone:
		holds, err = e.something(v)
		return holds, err == nil, err
	}
	return false, false, failed("the condition came to %s, which is neither true nor false", v.kind).
		WithHint("compare what it came to with something: `… > 0`, `… != null`")
}
