package streamed

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
)

// Kind is what a part of a plan is.
type Kind uint8

// The kinds.
const (
	Field     Kind = iota + 1 // a field of the plan that is no list of steps: Key and Value
	StepsOpen                 // the list of steps begins
	OneStep                   // a step: Value
	StepsEnd                  // the list of steps is closed
	PlanEnd                   // the plan is closed
)

// Part is a part of a plan that is whole. Its value is the bytes as they were written, without the white space around.
type Part struct {
	Kind  Kind
	Key   string
	Value json.RawMessage
}

// Reader finds the parts of a plan in a text as it comes. Around the plan there may be other text: a fence of Markdown,
// or what a model says. The plan is the first object that has steps, calls or a template. The zero value is not of use;
// New makes one.
type Reader struct {
	most int // bytes of a plan

	text  []byte // of the object in hand, from its brace on
	found []byte // the plan that was closed
	other []byte // the last object that was none

	stack   []byte // brackets that are open
	level   int    // how many of them are the plan's own: 0 outside, 1 among its fields, 2 among its steps
	want    want
	quoted  bool // within a string
	escaped bool // behind a backslash
	start   int  // where the value in hand, or the key, begins
	scalar  bool // the value in hand is a number or a word
	key     string
	keys    map[string]bool
	steps   int

	sure  bool   // the object is a plan
	parts []Part // that were not returned yet
	err   *fault.Error
}

// want is what may come next among the plan's own brackets.
type want uint8

const (
	wantFirst want = iota // a key, or the end; of the steps: a step, or the end
	wantKey
	wantColon
	wantValue
	wantComma // or the end
)

// New returns a reader of one plan, of at most so many bytes; 0 for as many as a plan may have.
func New(most int) *Reader {
	if most <= 0 {
		most = plan.MaxBytes
	}
	return &Reader{most: most}
}

// Write takes what was written next, and returns the parts that are whole by it. Once it failed it fails with the same
// error. Errors: MalformedJSON for what can't become a plan any more, and for a second plan behind the first;
// InvalidUTF8, DuplicateKey; LimitExceeded for what has more bytes or steps than a plan may have.
func (r *Reader) Write(p []byte) ([]Part, error) {
	for _, c := range p {
		if r.err != nil {
			break
		}
		r.take(c)
	}
	if !r.sure && r.found == nil {
		return nil, r.failed() // of what may be no plan nothing is told
	}
	parts := r.parts
	r.parts = nil
	return parts, r.failed()
}

// failed is the error of the reader; nil for none.
func (r *Reader) failed() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// End says that the text is over. Errors: MalformedJSON where the plan is not closed, or there is none.
func (r *Reader) End() error {
	switch {
	case r.err != nil:
		return r.err
	case r.found != nil:
		return nil
	case r.level > 0:
		return r.broken("the text ends within the plan").WithHint("close all strings, brackets and braces")
	case r.other != nil:
		r.found = r.other
		return nil
	}
	return fault.New(fault.MalformedJSON, "the text holds no plan").
		WithHint(`write one JSON object: {"steps": [{"id": "a", "tool": "…", "arguments": {}}]}`)
}

// Plan returns the text of the plan: all of it once it is closed, before that what was written of it.
func (r *Reader) Plan() []byte {
	if r.found != nil {
		return r.found
	}
	return r.text
}

// take reads one byte.
func (r *Reader) take(c byte) {
	if r.level == 0 {
		if c == '{' {
			r.begin()
		}
		return
	}
	r.text = append(r.text, c)
	if len(r.text) > r.most {
		r.err = fault.New(fault.LimitExceeded, "the plan has more than %d bytes", r.most).
			WithHint("split it into several plans, or let tools fetch large data themselves")
		return
	}
	bad := r.read(c)
	switch {
	case bad == nil:
	case r.sure:
		r.err = bad
	default: // it was no plan; the byte at which that shows may begin one
		r.leave()
		if c == '{' {
			r.begin()
		}
	}
}

// begin opens what may be a plan.
func (r *Reader) begin() {
	r.text, r.stack, r.level, r.want = append(r.text[:0:0], '{'), append(r.stack[:0], '{'), 1, wantFirst
	r.keys, r.steps = map[string]bool{}, 0
}

// leave goes back to the text around plans.
func (r *Reader) leave() {
	r.level, r.quoted, r.escaped, r.scalar, r.sure, r.text = 0, false, false, false, false, nil
	if r.found == nil {
		r.parts = nil
	}
}

// read reads one byte of the object in hand.
func (r *Reader) read(c byte) *fault.Error {
	switch {
	case r.quoted:
		return r.string(c)
	case len(r.stack) > r.level:
		return r.inside(c)
	case r.scalar:
		if isScalar(c) {
			return nil
		}
		if err := r.value(len(r.text) - 1); err != nil {
			return err
		}
	}
	if jsontape.IsSpace(c) {
		return nil
	}
	return r.own(c)
}

// string reads a byte of a string, be it a key, a value or within one.
func (r *Reader) string(c byte) *fault.Error {
	switch {
	case c < 0x20:
		return r.broken("a string holds a control character").WithHint(`write \n, \t or \u00XX in a string`)
	case r.escaped:
		r.escaped = false
	case c == '\\':
		r.escaped = true
	case c == '"':
		r.quoted = false
		switch {
		case len(r.stack) > r.level:
		case r.want == wantColon:
			return r.named()
		default:
			return r.value(len(r.text))
		}
	}
	return nil
}

// inside reads a byte within an object or array that is a value.
func (r *Reader) inside(c byte) *fault.Error {
	switch {
	case c == '"':
		r.quoted = true
	case c == '{' || c == '[':
		return r.open(c)
	case c == '}' || c == ']':
		if opening := r.stack[len(r.stack)-1]; (c == '}') != (opening == '{') {
			return r.broken("a bracket of the wrong kind is closed here")
		}
		if r.stack = r.stack[:len(r.stack)-1]; len(r.stack) == r.level {
			return r.value(len(r.text))
		}
	case c != ',' && c != ':' && !jsontape.IsSpace(c) && !isScalar(c):
		return r.broken("this is no JSON")
	}
	return nil
}

// open notes a bracket.
func (r *Reader) open(c byte) *fault.Error {
	if len(r.stack) >= plan.MaxDepth {
		return fault.New(fault.MalformedJSON, "the JSON is nested more than %d deep", plan.MaxDepth).WithHint("flatten the arguments")
	}
	r.stack = append(r.stack, c)
	return nil
}

// own reads a byte between the fields of the plan, or between its steps.
func (r *Reader) own(c byte) *fault.Error {
	closing, opening := byte('}'), byte('"')
	if r.level == 2 {
		closing, opening = ']', c
	}
	switch {
	case c == closing && (r.want == wantFirst || r.want == wantComma):
		return r.close()
	case r.want == wantComma && c == ',':
		if r.want = wantKey; r.level == 2 {
			r.want = wantValue
		}
	case r.want == wantColon && c == ':':
		r.want = wantValue
	case r.level == 1 && (r.want == wantFirst || r.want == wantKey) && c == opening:
		r.quoted, r.start, r.want = true, len(r.text)-1, wantColon
	case r.want == wantValue || r.level == 2 && r.want == wantFirst:
		return r.opening(c)
	default:
		return r.broken("this is no JSON")
	}
	return nil
}

// opening reads the first byte of a value.
func (r *Reader) opening(c byte) *fault.Error {
	r.start, r.want = len(r.text)-1, wantComma
	switch {
	case c == '[' && r.level == 1 && r.key == stepsKey:
		r.level, r.want = 2, wantFirst
		r.tell(Part{Kind: StepsOpen})
		return r.open(c)
	case c == '{' || c == '[':
		return r.open(c)
	case c == '"':
		r.quoted = true
	case isScalar(c):
		r.scalar = true
	default:
		return r.broken("a value is expected here")
	}
	return nil
}

// close ends the list of steps, or the plan.
func (r *Reader) close() *fault.Error {
	r.stack, r.level, r.want = r.stack[:len(r.stack)-1], r.level-1, wantComma
	if r.level == 1 {
		r.tell(Part{Kind: StepsEnd})
		return nil
	}
	if r.sure {
		r.tell(Part{Kind: PlanEnd})
		r.found = r.text
	} else {
		r.other = r.text
	}
	r.leave()
	return nil
}

const stepsKey = "steps"

// ofPlans are the keys by which an object is known as a plan.
var ofPlans = map[string]bool{stepsKey: true, "calls": true, "template": true, "plan": true}

// named takes the key that ends here.
func (r *Reader) named() *fault.Error {
	raw := r.text[r.start:]
	if bad := r.check(raw); bad != nil {
		return bad
	}
	r.key = string(jsontape.AppendUnescaped(nil, raw[1:len(raw)-1]))
	if ofPlans[r.key] {
		if r.found != nil {
			return r.second()
		}
		r.sure = true
	}
	if r.keys[r.key] {
		return fault.New(fault.DuplicateKey, "the key %q is used twice in the plan", short(r.key)).WithHint("keep one of the two")
	}
	r.keys[r.key] = true
	return nil
}

// second refuses a plan behind the plan: whoever writes again what to do means something else than before.
func (r *Reader) second() *fault.Error {
	r.sure = true
	return fault.New(fault.MalformedJSON, "the text holds a second plan behind the first").
		WithHint("write one plan; what is to be changed in it is written before its steps, or amended later")
}

// value takes the value that ends at a byte of the text.
func (r *Reader) value(end int) *fault.Error {
	r.scalar, r.want = false, wantComma
	raw := bytes.Clone(r.text[r.start:end])
	if bad := r.check(raw); bad != nil {
		return bad
	}
	if r.level == 1 {
		r.tell(Part{Kind: Field, Key: r.key, Value: raw})
		return nil
	}
	if r.steps++; r.steps > plan.MaxSteps {
		return fault.New(fault.LimitExceeded, "the plan has more than %d steps", plan.MaxSteps).WithHint("split it into several plans")
	}
	r.tell(Part{Kind: OneStep, Value: raw})
	return nil
}

// tell keeps a part until it is returned. What stands in an object behind the plan is none.
func (r *Reader) tell(p Part) {
	if r.found == nil {
		r.parts = append(r.parts, p)
	}
}

// check reads a part as a JSON text of its own.
func (r *Reader) check(raw []byte) *fault.Error {
	s := jsontape.New(raw, plan.MaxDepth)
	defer s.Release()
	if err := s.Scan(); err != nil {
		return r.broken(err.Message)
	}
	switch s.First {
	case fault.DuplicateKey:
		return fault.New(fault.DuplicateKey, "a key is used twice in one object, at %q of what ends in %s", short(s.Where), r.place()).WithHint("keep one of the two")
	case fault.InvalidUTF8:
		return fault.New(fault.InvalidUTF8, "a string before %s is not valid UTF-8, or holds half a surrogate pair", r.place()).
			WithHint(`write the character itself, or both halves: \ud83d\ude00`)
	}
	return nil
}

// broken says where the text stops being a plan.
func (r *Reader) broken(why string) *fault.Error {
	return fault.New(fault.MalformedJSON, "not JSON at %s of the plan: %s", r.place(), why).WithHint("send one JSON object (RFC 8259)")
}

// isScalar reports whether a byte may stand in a number, true, false or null.
func isScalar(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || strings.IndexByte("+-.E", c) >= 0
}
