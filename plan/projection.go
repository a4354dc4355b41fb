package plan

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// maxKeptLists bounds the bytes of projections that a Resolver remembers.
const maxKeptLists = 8 << 20

// project returns what a path comes to that goes on with every item of an array (rule 8): one list of all that is
// found. stop is the place of [*] in the path. What is found is counted before it is copied. lax counts a path into a
// string, a number or a boolean as missing, as it is among alternatives.
func (r *Resolver) project(t *target, array []byte, stop int, lax bool, room int64) (list []byte, at int, f found, err *fault.Error) {
	if known, ok := r.lists[t.text]; ok && t.remembered() != theItem {
		return known, len(t.path), isThere, nil
	}
	size, count := int64(len("[]")), 0
	p := projection{lax: lax, take: func(v []byte) {
		size += int64(len(v))
		count++
	}}
	if into, stop, ok := p.each(array, t.path, stop); !ok {
		return into, stop, notInto, nil
	}
	if size += int64(max(0, count-1)); size > room {
		return nil, 0, missing, tooLarge(r.limit()-room+size, r.limit())
	}
	list = append(make([]byte, 0, size), '[')
	p.take = func(v []byte) {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, v...)
	}
	p.each(array, t.path, stop)
	list = append(list, ']')
	if t.remembered() != theItem && len(array) >= worthIt && r.kept+len(list) <= maxKeptLists && !p.passed {
		if r.lists == nil {
			r.lists = map[string][]byte{}
		}
		r.lists[t.text], r.kept = list, r.kept+len(list)
	}
	return list, len(t.path), isThere, nil
}

// projection goes through arrays within arrays.
type projection struct {
	lax    bool
	passed bool // something was left out because lax allowed it
	take   func(value []byte)
}

// each follows the rest of a path behind the [*] at path[every] from each item of an array. Where it can't go on, it
// gives the value that it can't go into and the place in the path.
func (p *projection) each(array []byte, path []elem, every int) (at []byte, stop int, ok bool) {
	rest := path[every+1:]
	for i := jsontape.Item(array, 0, 0); i >= 0; i = jsontape.NextItem(array, i) {
		end := jsontape.SkipValue(array, i)
		if end <= i {
			break
		}
		var r *Resolver // items are many, and each is gone through once
		at, stop, f := r.lookup(theItem, array[i:end], rest)
		stop += every + 1
		switch f {
		case isThere:
			p.take(at)
		case isMany:
			if at, stop, ok := p.each(at, path, stop); !ok {
				return at, stop, false
			}
		case notInto:
			if !p.lax {
				return at, stop, false
			}
			p.passed = true
		default: // missing: the next one is looked at
		}
	}
	return nil, 0, true
}
