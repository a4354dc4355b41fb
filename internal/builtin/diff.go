package builtin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/internal/jsontape"
)

const diffResult = `{"type":"object","properties":{"result":{"type":"object","properties":{"equal":{"type":"boolean"},` +
	`"changes":{"type":"array","items":{"type":"object","properties":{"op":{"enum":["add","remove","replace"]},` +
	`"path":{"type":"string"},"from":{},"to":{}},"required":["op","path"]}}},"required":["equal","changes"]}},"required":["result"],"additionalProperties":false}`

// differ walks two values side by side and writes what differs. It stops once the list is over the output limit: a
// long key above many differences would repeat in each path.
type differ struct {
	changes strings.Builder
	found   bool
	first   bool // stop at the first difference
}

func jsonEqual(args gjson.Result) ([]byte, error) {
	d := differ{first: true}
	d.compare(nil, member(args, "a"), member(args, "b"))
	return result(!d.found)
}

func jsonDiff(args gjson.Result) ([]byte, error) {
	var d differ
	d.compare(nil, member(args, "a"), member(args, "b"))
	if d.changes.Len() > MaxSize {
		return nil, outputTooLarge()
	}
	return wrap(`{"equal":` + strconv.FormatBool(!d.found) + `,"changes":[` + d.changes.String() + `]}`), nil
}

func (d *differ) done() bool { return d.found && d.first || d.changes.Len() > MaxSize }

// place is a JSON pointer in the making. It is written only where there is a difference, because a long key above many
// equal members would cost its length for each of them.
type place struct {
	up  *place
	key string
}

func (p *place) String() string {
	var parts []string
	for ; p != nil; p = p.up {
		parts = append(parts, "/"+jsontape.EscapeToken(p.key))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func (d *differ) change(op string, at *place, from, to string) {
	d.found = true
	if d.done() {
		return
	}
	if d.changes.Len() > 0 {
		d.changes.WriteByte(',')
	}
	d.changes.WriteString(`{"op":"` + op + `","path":`)
	d.changes.Write(gjson.AppendJSONString(nil, at.String()))
	if op != "add" {
		d.changes.WriteString(`,"from":` + from)
	}
	if op != "remove" {
		d.changes.WriteString(`,"to":` + to)
	}
	d.changes.WriteByte('}')
}

func (d *differ) compare(at *place, a, b gjson.Result) {
	switch {
	case d.done():
	case a.IsObject() && b.IsObject():
		d.compareObjects(at, membersOf(a), membersOf(b))
	case a.IsArray() && b.IsArray():
		d.compareArrays(at, a.Array(), b.Array())
	case !sameScalar(a, b):
		d.change("replace", at, a.Raw, b.Raw)
	}
}

func (d *differ) compareObjects(at *place, a, b *members) {
	for i, raw := range a.keys {
		key := gjson.Parse(raw).String()
		if other, ok := b.get(key); ok {
			d.compare(&place{at, key}, a.values[i].Result, other)
		} else {
			d.change("remove", &place{at, key}, a.values[i].Raw, "")
		}
		if d.done() {
			return
		}
	}
	for i, raw := range b.keys {
		key := gjson.Parse(raw).String()
		if _, ok := a.get(key); !ok {
			d.change("add", &place{at, key}, "", b.values[i].Raw)
		}
		if d.done() {
			return
		}
	}
}

// compareArrays compares by index. What a has beyond b is removed from the end, so that the list can be applied in its
// order.
func (d *differ) compareArrays(at *place, a, b []gjson.Result) {
	for i := 0; i < min(len(a), len(b)) && !d.done(); i++ {
		d.compare(&place{at, strconv.Itoa(i)}, a[i], b[i])
	}
	for i := len(a) - 1; i >= len(b) && !d.done(); i-- {
		d.change("remove", &place{at, strconv.Itoa(i)}, a[i].Raw, "")
	}
	for i := len(a); i < len(b) && !d.done(); i++ {
		d.change("add", &place{at, strconv.Itoa(i)}, "", b[i].Raw)
	}
}

// sameScalar compares values of which at most one is an object or an array.
func sameScalar(a, b gjson.Result) bool {
	switch {
	case a.Type != b.Type:
		return false
	case a.Type == gjson.String:
		return a.Str == b.Str
	case a.Type == gjson.Number:
		return a.Raw == b.Raw || jsontape.Canonical(a.Raw) == jsontape.Canonical(b.Raw)
	}
	return a.Type != gjson.JSON // true, false and null are types of their own
}
