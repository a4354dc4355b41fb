package plan

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// found is what became of a path into a result.
type found uint8

const (
	isThere found = iota // a value, perhaps null
	missing              // nothing there
	notInto              // the path goes into a string, a number or a boolean, or [*] into an object
	isMany               // an array whose items the path goes on with (rule 8)
)

// lookup follows a path into a JSON value and gives the bytes of what is there, exactly as they stand (rule 6), up to
// the first [*]. stop is the number of elements of the path that were followed; where it goes no further, at begins
// with the value that it stopped at. It reads the value once up to that place, skipping what it has no need of, and
// allocates nothing unless a key has escapes or the value is large. The value is one that Output has passed; of
// anything else it makes some value or none, but never reads beyond it.
func (r *Resolver) lookup(dep int, value []byte, path []elem) (at []byte, stop int, f found) {
	i := jsontape.SkipSpace(value, 0)
	for n := range path {
		if i >= len(value) {
			return nil, n, missing
		}
		e, from := &path[n], i
		switch value[i] {
		case '{':
			switch {
			case e.isEvery():
				return value[i:], n, notInto
			case !e.isKey:
				return value[i:], n, missing
			}
			i = r.member(dep, value, i, e.key)
		case '[':
			switch {
			case e.isEvery():
				return value[i:jsontape.SkipValue(value, i)], n, isMany
			case e.index < 0:
				return value[i:], n, missing
			}
			i = r.item(dep, value, i, e.index)
		case 'n':
			return value[i:], n, missing
		default:
			return value[i:], n, notInto
		}
		if i < 0 {
			return value[from:], n, missing
		}
	}
	end := jsontape.SkipValue(value, i)
	if end <= i {
		return nil, len(path), missing
	}
	return value[i:end], len(path), isThere
}

// look returns what a reference in an expression finds. A path into a value without parts, and [*] on what is no array,
// finds nothing where lax is set, as in conditions and before "??"; else it is unresolved_ref, as it is in arguments.
func (r *Resolver) look(
	t *target, lax bool, item []byte, result func(dep int) ([]byte, bool),
) (json []byte, ok bool, err *fault.Error) {
	value, ok := r.about(t, item, result)
	if !ok {
		return nil, false, nil
	}
	r.left -= int64(len(value))
	at, stop, f := r.lookup(t.remembered(), value, t.path)
	if f == isMany {
		array := at
		if at, stop, f, err = r.project(t, array, stop, lax, MaxArguments); err != nil {
			return array, true, nil // more than any expression may read
		}
	}
	if f == notInto && !lax {
		return nil, false, r.notInto(t, stop, at)
	}
	return at, f == isThere, nil
}

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
		return nil, 0, missing, r.tooLarge(r.limit() - room + size)
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
