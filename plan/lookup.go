package plan

import "github.com/stepjet/stepjet/internal/jsontape"

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

// look returns what a reference in an expression finds: there, a path into a value without parts finds nothing.
func (r *Resolver) look(t *target, result func(dep int) ([]byte, bool)) (json []byte, ok bool) {
	value, ok := r.about(t, nil, result)
	if !ok {
		return nil, false
	}
	at, stop, f := r.lookup(t.remembered(), value, t.path)
	if f == isMany {
		list, _, all, err := r.project(t, at, stop, true, r.limit())
		return list, err == nil && all == isThere
	}
	return at, f == isThere
}
