package expression

import (
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
)

// pair returns the texts of two strings; null is whether one of them is null instead.
func (e *evaluation) pair(x *binary, a, b value) (l, r string, none bool, err *fault.Error) {
	if err = e.want(str, x.left, a, texts); err == nil {
		err = e.want(str, x.right, b, texts)
	}
	if err != nil || a.kind == null || b.kind == null {
		return "", "", true, err
	}
	if l, err = e.string(a); err == nil {
		r, err = e.string(b)
	}
	return l, r, false, err
}

// containment is "contains": a part of a string, or an item of an array.
func containment(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	if a.kind == array {
		return e.holds(a, b)
	}
	if a.kind != null && a.kind != str {
		return value{}, e.mismatch(x.left, a, "a string or an array before it")
	}
	l, r, none, err := e.pair(x, a, b)
	if err != nil || none {
		return value{}, err
	}
	return truth(strings.Contains(l, r)), nil
}

// affix is startsWith and endsWith.
func affix(e *evaluation, x *binary, a, b value) (value, *fault.Error) {
	l, r, none, err := e.pair(x, a, b)
	switch {
	case err != nil || none:
		return value{}, err
	case x.op == "startsWith":
		return truth(strings.HasPrefix(l, r)), nil
	}
	return truth(strings.HasSuffix(l, r)), nil
}

// letters is lower, upper and trim.
func letters(e *evaluation, x *call, args []value) (value, *fault.Error) {
	if err := e.want(str, x.args[0], args[0], texts); err != nil || args[0].kind == null {
		return value{}, err
	}
	text, err := e.string(args[0])
	if err != nil {
		return value{}, err
	}
	if err := e.spend(4 * len(text)); err != nil {
		return value{}, err
	}
	switch x.name {
	case "lower":
		text = strings.ToLower(text)
	case "upper":
		text = strings.ToUpper(text)
	default:
		text = strings.TrimSpace(text)
	}
	return textOf(text), nil
}

// length is len: the characters of a string, the items of an array, the members of an object.
func length(e *evaluation, x *call, args []value) (value, *fault.Error) {
	var n int
	switch v := args[0]; v.kind {
	case null:
		return value{}, nil
	case str:
		text, err := e.string(v)
		if err != nil {
			return value{}, err
		}
		n = utf8.RuneCountInString(text)
	case array:
		items, err := e.items(v)
		if err != nil {
			return value{}, err
		}
		n = len(items)
	case object:
		all, err := e.members(v)
		if err != nil {
			return value{}, err
		}
		n = len(all)
	case boolean, number:
		return value{}, e.mismatch(x.args[0], v, "a string, an array or an object")
	}
	return count(n), nil
}
