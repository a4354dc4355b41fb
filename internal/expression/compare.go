package expression

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// equality is == and !=. Values of different kinds are different.
func equality(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	same, err := e.equal(a, b)
	return truth(same == (x.op == "==")), err
}

// equal compares to any depth: numbers by what they are worth, with all digits, strings by their bytes, objects
// whatever the order of their keys.
func (e *evaluation) equal(a, b value) (bool, *fault.Error) {
	if a.kind != b.kind {
		return false, nil
	}
	switch a.kind {
	case null:
		return true, nil
	case boolean:
		return a.yes == b.yes, nil
	case number:
		n, err := e.compareNumbers(a, b)
		return n == 0, err
	case str:
		n, err := e.compareStrings(a, b)
		return n == 0, err
	case array:
		return e.equalArrays(a, b)
	case object:
	}
	return e.equalObjects(a, b)
}

func (e *evaluation) compareNumbers(a, b value) (int, *fault.Error) {
	x, err := e.number(a)
	if err != nil {
		return 0, err
	}
	y, err := e.number(b)
	if err != nil {
		return 0, err
	}
	return x.Cmp(y), nil
}

func (e *evaluation) compareStrings(a, b value) (int, *fault.Error) {
	x, err := e.string(a)
	if err != nil {
		return 0, err
	}
	y, err := e.string(b)
	if err != nil {
		return 0, err
	}
	return strings.Compare(x, y), nil
}

func (e *evaluation) equalArrays(a, b value) (bool, *fault.Error) {
	x, err := e.items(a)
	if err != nil {
		return false, err
	}
	y, err := e.items(b)
	if err != nil || len(x) != len(y) {
		return false, err
	}
	for i := range x {
		if same, err := e.equal(x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (e *evaluation) equalObjects(a, b value) (bool, *fault.Error) {
	x, err := e.members(a)
	if err != nil {
		return false, err
	}
	y, err := e.members(b)
	if err != nil || len(x) != len(y) {
		return false, err
	}
	for i := range x {
		if x[i].key != y[i].key {
			return false, nil
		}
		if same, err := e.equal(x[i].value, y[i].value); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

type member struct {
	key   string
	value value
}

// members returns the members of an object, by their keys.
func (e *evaluation) members(v value) ([]member, *fault.Error) {
	if err := e.read(v); err != nil {
		return nil, err
	}
	var all []member
	jsontape.Members(v.raw, func(key, raw []byte) bool {
		all = append(all, member{jsontape.Unquoted(key), valueOf(raw)})
		return true
	})
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return all, e.spend(len(v.raw)/4 + 2*workItem*len(all))
}

// order is < <= > >=.
func order(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	const takes = "numbers, or strings"
	if a.kind != str {
		if err := e.want(number, x.left, a, takes); err != nil {
			return value{}, err
		}
	}
	if b.kind != str {
		if err := e.want(number, x.right, b, takes); err != nil {
			return value{}, err
		}
	}
	var n int
	var err *fault.Error
	switch {
	case a.kind == null || b.kind == null:
		return value{}, nil
	case a.kind != b.kind:
		return value{}, e.fail("%s is %s, and %s is %s", described(x.left), a.kind, described(x.right), b.kind).
			WithHint("compare numbers with numbers, and strings with strings")
	case a.kind == number:
		n, err = e.compareNumbers(a, b)
	default:
		n, err = e.compareStrings(a, b)
	}
	switch x.op {
	case "<":
		return truth(n < 0), err
	case "<=":
		return truth(n <= 0), err
	case ">":
		return truth(n > 0), err
	}
	return truth(n >= 0), err
}

// membership is "in": an item of an array, or a key of an object.
func membership(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	switch b.kind {
	case null:
		return value{}, nil
	case array:
		return e.holds(b, a)
	case object:
		if err := e.want(str, x.left, a, texts+" before an object, for its keys"); err != nil || a.kind == null {
			return value{}, err
		}
		return e.hasKey(b, a)
	case boolean, number, str:
	}
	err := e.mismatch(x.right, b, "an array or an object behind it")
	if b.kind == str {
		err = err.WithHint("a part of a string is found by `… contains …`")
	}
	return value{}, err
}

// holds reports whether an array has an item that is equal to a value.
func (e *evaluation) holds(list, v value) (value, *fault.Error) {
	items, err := e.items(list)
	if err != nil {
		return value{}, err
	}
	for i := range items {
		if same, err := e.equal(items[i], v); err != nil || same {
			return truth(same), err
		}
	}
	return truth(false), nil
}

func (e *evaluation) hasKey(in, key value) (value, *fault.Error) {
	text, err := e.string(key)
	if err != nil {
		return value{}, err
	}
	if err := e.read(in); err != nil {
		return value{}, err
	}
	return truth(jsontape.Member(in.raw, 0, text) >= 0), e.spend(len(in.raw) / 4)
}
