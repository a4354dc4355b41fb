package expression

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// kind is the kind of a value.
type kind uint8

const (
	null kind = iota
	boolean
	number
	str
	array
	object
)

// String names a kind as messages do. Messages never tell values.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// value is what a node comes to. What a reference found stays JSON until something of it is needed.
type value struct {
	kind kind
	yes  bool         // of a boolean
	raw  []byte       // what was referred to, or a part of it; nil of all else
	ref  int          // of a reference's whole value: one more than its index; 0 of all else
	num  *apd.Decimal // of a number without raw
	text string       // of a string without raw
	list []value      // of an array without raw
}

func truth(b bool) value { return value{kind: boolean, yes: b} }

func textOf(s string) value { return value{kind: str, text: s} }

func count(n int) value { return numberOf(apd.New(int64(n), 0)) }

func numberOf(d *apd.Decimal) value { return value{kind: number, num: d} }

// valueOf returns the value of some JSON without white space around it.
func valueOf(raw []byte) value {
	v := value{raw: raw}
	if len(raw) == 0 {
		return value{}
	}
	switch raw[0] {
	case '{':
		v.kind = object
	case '[':
		v.kind = array
	case '"':
		v.kind = str
	case 't', 'f':
		v.kind, v.yes = boolean, raw[0] == 't'
	case 'n':
		return value{}
	default:
		v.kind = number
	}
	return v
}

// trimmed returns JSON without the white space around it.
func trimmed(raw []byte) []byte {
	raw = raw[jsontape.SkipSpace(raw, 0):]
	for len(raw) > 0 && jsontape.IsSpace(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// something tells whether a value is more than false, 0, "", [] or {}. It reads no further than that takes.
func (e *evaluation) something(v value) (bool, *fault.Error) {
	e.op, e.at = "the condition", -1
	switch v.kind {
	case null, boolean:
	case number:
		d, err := e.number(v)
		return err == nil && !d.IsZero(), err
	case str:
		return len(v.raw) > len(`""`), nil
	case array, object:
		i := jsontape.SkipSpace(v.raw, 1)
		return i < len(v.raw) && v.raw[i] != ']' && v.raw[i] != '}', nil
	}
	return v.yes, nil
}

// truthy is true unless its value is null, false, 0, "", [] or {}, as a condition of one reference is.
func truthy(e *evaluation, _ *call, args []value) (value, *fault.Error) {
	v := args[0]
	switch {
	case v.raw == nil && v.kind == str:
		return truth(v.text != ""), nil
	case v.raw == nil && v.kind == array:
		return truth(len(v.list) > 0), nil
	}
	yes, err := e.something(v)
	return truth(yes), err
}

// result writes what an expression came to.
func (e *evaluation) result(v value) ([]byte, *fault.Error) {
	e.op, e.at = "the result", -1
	if v.raw != nil {
		if err := e.read(v); err != nil {
			return nil, err
		}
		return v.raw, nil
	}
	return e.appendJSON(nil, v)
}

// appendJSON writes a value. What is too long is refused before it is there.
func (e *evaluation) appendJSON(dst []byte, v value) ([]byte, *fault.Error) {
	if err := e.read(v); err != nil {
		return nil, err
	}
	if len(dst)+len(v.raw)+len(v.text) > e.limits.Bytes {
		return nil, e.fail("it has more than %d bytes", e.limits.Bytes).WithHint(smaller)
	}
	switch {
	case v.raw != nil:
		return append(dst, v.raw...), nil
	case v.kind == boolean && v.yes:
		return append(dst, "true"...), nil
	case v.kind == boolean:
		return append(dst, "false"...), nil
	case v.kind == number:
		return appendNumber(dst, v.num), nil
	case v.kind == str:
		return jsontape.AppendQuoted(dst, v.text), nil
	case v.kind == array:
		return e.appendList(dst, v.list)
	}
	return append(dst, "null"...), nil
}

func (e *evaluation) appendList(dst []byte, items []value) (_ []byte, err *fault.Error) {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = e.appendJSON(dst, items[i]); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}
