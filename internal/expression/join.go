package expression

import (
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

const (
	objects = "objects"
	lists   = "arrays, or strings"
)

// merge makes one object of several: members of a later one take the place of those before. null is left out, as an
// operand and as a member; of nothing it is null.
func merge(e *evaluation, x *call, args []value) (value, *fault.Error) {
	all := map[string]value{}
	some := false
	for i, v := range args {
		if err := e.want(object, x.args[i], v, objects); err != nil {
			return value{}, err
		}
		if v.kind == null {
			continue
		}
		members, err := e.members(v)
		if err != nil {
			return value{}, err
		}
		some = true
		for _, m := range members {
			if m.value.kind != null {
				all[m.key] = m.value
			}
		}
	}
	return objectOf(e, all, some)
}

// put returns an object with members that are named by texts: put(object, "key", value, …). null is left out, as the
// object and as a value; of nothing it is null.
func put(e *evaluation, x *call, args []value) (value, *fault.Error) {
	if len(args)%2 == 0 {
		return value{}, e.fail("behind the object stand keys, and a value behind each").WithHint("write `%s`", x.example)
	}
	v := args[0]
	if err := e.want(object, x.args[0], v, objects); err != nil {
		return value{}, err
	}
	all := map[string]value{}
	if v.kind == object {
		members, err := e.members(v)
		if err != nil {
			return value{}, err
		}
		for _, m := range members {
			all[m.key] = m.value
		}
	}
	some := v.kind == object
	for i := 1; i < len(args); i += 2 {
		if args[i].kind != str {
			return value{}, e.mismatch(x.args[i], args[i], "the text of a key")
		}
		if args[i+1].kind == null {
			continue
		}
		key, err := e.string(args[i])
		if err != nil {
			return value{}, err
		}
		all[key], some = args[i+1], true
	}
	return objectOf(e, all, some)
}

// objectOf writes an object, its members by their keys; null unless there is one.
func objectOf(e *evaluation, members map[string]value, some bool) (_ value, err *fault.Error) {
	if !some {
		return value{}, nil
	}
	raw := []byte{'{'}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if len(raw) > 1 {
			raw = append(raw, ',')
		}
		raw = append(jsontape.AppendQuoted(raw, key), ':')
		if raw, err = e.appendJSON(raw, members[key]); err != nil {
			return value{}, err
		}
	}
	raw = append(raw, '}')
	return value{kind: object, raw: raw}, e.spend(len(raw)/4 + workItem*len(members))
}

// concat puts arrays together to one, or strings. null is left out; of nothing it is null.
func concat(e *evaluation, x *call, args []value) (value, *fault.Error) {
	var is kind
	var text string
	var list []value
	for i, v := range args {
		switch {
		case v.kind == null:
			continue
		case v.kind != array && v.kind != str || is != null && v.kind != is:
			return value{}, e.mismatch(x.args[i], v, lists+" all of them")
		}
		if is = v.kind; is == str {
			s, err := e.string(v)
			if text += s; err != nil || len(text) > e.limits.Bytes {
				return value{}, tooLong(e, err)
			}
			continue
		}
		items, err := e.items(v)
		if list = append(list, items...); err != nil || len(list) > e.limits.Elements {
			return value{}, tooLong(e, err)
		}
	}
	if is == str {
		return textOf(text), nil
	}
	return value{kind: is, list: list}, nil
}

// tooLong is the error of an operand, if it has one, else that of a result that is too long.
func tooLong(e *evaluation, err *fault.Error) *fault.Error {
	if err != nil {
		return err
	}
	return e.fail("it has more than %d bytes or %d items", e.limits.Bytes, e.limits.Elements).WithHint(smaller)
}
