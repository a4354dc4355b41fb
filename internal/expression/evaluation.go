package expression

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Bounds of one evaluation beside its Limits.
const (
	// maxWork bounds the time, in units of about five nanoseconds: 200 nodes may look at the same value again and again.
	maxWork = 8 << 20
	// workItem is the work for an item of an array or a member of an object.
	workItem = 64
	// maxDepth is how deep a value may nest. Results nest at most 64 deep, and entries of items and calls around them
	// less than that again.
	maxDepth = 128
)

const smaller = "refer to a part of it, or let a step before make it smaller"

// evaluation is one evaluation of an expression.
type evaluation struct {
	get      Get
	limits   Limits
	slots    []slot
	op       string // what is being done, for messages
	at       int    // where it stands in the text; -1 for nowhere
	bytes    int    // read so far, as are elements
	elements int
	work     int
}

// slot is what is known of a reference.
type slot struct {
	value value
	got   bool // value is there
	read  bool // and counted
}

func (x *Expression) evaluation(get Get, l Limits) *evaluation {
	return &evaluation{get: get, limits: l, slots: make([]slot, len(x.refs))}
}

func failed(format string, args ...any) *fault.Error {
	return fault.New(fault.ConditionFailed, format, args...)
}

// fail says what went wrong where.
func (e *evaluation) fail(format string, args ...any) *fault.Error {
	if e.at < 0 {
		return failed("%s: "+format, append([]any{e.op}, args...)...)
	}
	return failed("`%s` at byte %d: "+format, append([]any{e.op, e.at}, args...)...)
}

// mismatch says that an operand is of the wrong kind. It tells no value.
func (e *evaluation) mismatch(x node, v value, takes string) *fault.Error {
	err := e.fail("%s is %s, and it takes %s", described(x), v.kind, takes)
	switch {
	case v.kind == str && takes == numbers && e.op == "+":
		return err.WithHint("texts are put together by `concat($ref:a.first, \" \", $ref:a.last)`; " +
			"a string is no number, even where it looks like one: let a step make one of it")
	case v.kind == str && takes == numbers:
		return err.WithHint("a string is no number, even where it looks like one: let a step make one of it")
	case v.kind == array:
		return err.WithHint("refer to one of its items, or use `len(…)`, `sum(…)`, `x in …`")
	case v.kind == object:
		return err.WithHint("refer to one of its keys")
	case takes == booleans:
		return err.WithHint("compare it with something, as in `… > 0`; another value in place of null is `a ?? b`")
	}
	return err.WithHint("refer to something else, or compare it with ==")
}

// want refuses a value that is of neither this kind nor null.
func (e *evaluation) want(k kind, x node, v value, takes string) *fault.Error {
	if v.kind == k || v.kind == null {
		return nil
	}
	return e.mismatch(x, v, takes)
}

// What operators and functions take.
const (
	numbers  = "numbers"
	booleans = "true and false"
	texts    = "strings"
)

// spend notes work done.
func (e *evaluation) spend(units int) *fault.Error {
	if e.work += units; e.work > maxWork {
		return e.fail("this takes too long").WithHint(smaller)
	}
	if e.limits.Work == nil {
		return nil
	}
	if *e.limits.Work -= units; *e.limits.Work < 0 {
		return e.fail("this takes too long, together with the calculations before it").WithHint(smaller)
	}
	return nil
}

// lookup returns the value of a reference.
func (e *evaluation) lookup(i int) value {
	s := &e.slots[i]
	if !s.got {
		s.got = true
		if raw, ok := e.get(i); ok {
			s.value = valueOf(trimmed(raw))
			s.value.ref = i + 1
		}
	}
	return s.value
}

// read counts a value as read, once.
func (e *evaluation) read(v value) *fault.Error {
	if v.ref == 0 || e.slots[v.ref-1].read {
		return nil
	}
	e.slots[v.ref-1].read = true
	if e.bytes += len(v.raw); e.bytes > e.limits.Bytes {
		return e.fail("what the expression reads has more than %d bytes", e.limits.Bytes).WithHint(smaller)
	}
	if v.kind != array && v.kind != object {
		return nil
	}
	elements, depth := measure(v.raw)
	if depth > maxDepth {
		return e.fail("what the expression reads is nested deeper than %d", maxDepth).WithHint(smaller)
	}
	if e.elements += elements; e.elements > e.limits.Elements {
		return e.fail("what the expression reads has more than %d items and members", e.limits.Elements).WithHint(smaller)
	}
	return nil
}

// measure counts the items and members of JSON, and how deep it nests.
func measure(raw []byte) (elements, depth int) {
	open := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = jsontape.SkipString(raw, i) - 1
		case ',':
			elements++
		case '[', '{':
			open++
			depth = max(depth, open)
			if j := jsontape.SkipSpace(raw, i+1); j < len(raw) && raw[j] != ']' && raw[j] != '}' {
				elements++
			}
		case ']', '}':
			open--
		}
	}
	return elements, depth
}

// number returns a number as it is, with all of its digits.
func (e *evaluation) number(v value) (*apd.Decimal, *fault.Error) {
	if v.num != nil {
		return v.num, nil
	}
	if err := e.read(v); err != nil {
		return nil, err
	}
	if err := e.spend(workItem); err != nil {
		return nil, err
	}
	d, why := parseNumber(v.raw)
	if why != "" {
		return nil, e.fail("a number %s", why).WithHint("as text it could be compared: let the tool return it as a string")
	}
	return d, nil
}

// string returns the text of a string.
func (e *evaluation) string(v value) (string, *fault.Error) {
	if v.raw == nil {
		return v.text, e.spend(len(v.text) / 4)
	}
	if err := e.read(v); err != nil {
		return "", err
	}
	return jsontape.Unquoted(v.raw), e.spend(len(v.raw) / 4)
}

// items returns the items of an array.
func (e *evaluation) items(v value) ([]value, *fault.Error) {
	if v.raw == nil {
		return v.list, e.spend(workItem * len(v.list))
	}
	if err := e.read(v); err != nil {
		return nil, err
	}
	var items []value
	for i := jsontape.SkipSpace(v.raw, 1); i < len(v.raw) && v.raw[i] != ']'; {
		end := jsontape.SkipValue(v.raw, i)
		if end == i {
			break // no JSON
		}
		items = append(items, valueOf(v.raw[i:end:end]))
		if i = jsontape.SkipSpace(v.raw, end); i < len(v.raw) && v.raw[i] == ',' {
			i = jsontape.SkipSpace(v.raw, i+1)
		}
	}
	return items, e.spend(len(v.raw)/4 + workItem*len(items))
}
