package plan

import (
	"bytes"
	"strings"
)

// found is what became of a path into a result.
type found uint8

const (
	isThere found = iota // a value, perhaps null
	missing              // nothing there
	notInto              // the path goes into a string, a number or a boolean, or [*] into an object
	isMany               // an array whose items the path goes on with (rule 8)
)

// lookup follows a path into a JSON value and gives the bytes of what is there, exactly as they stand (rule 6), up to the
// first [*]. stop is the number of elements of the path that were followed; where it goes no further, at begins with the
// value that it stopped at. It reads the value once up to that place, skipping what it has
// no need of, and allocates nothing unless a key has escapes or the value is large. The value is one that Output has passed; of anything else
// it makes some value or none, but never reads beyond it.
func (r *Resolver) lookup(dep int, value []byte, path []elem) (at []byte, stop int, f found) {
	i := skipWhite(value, 0)
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
				return value[i:skipValue(value, i)], n, isMany
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
	end := skipValue(value, i)
	if end <= i {
		return nil, len(path), missing
	}
	return value[i:end], len(path), isThere
}

// member gives where the value of a key begins in the object at i, -1 if there is none.
func member(b []byte, i int, key string) int {
	i = skipWhite(b, i+1)
	for i < len(b) && b[i] == '"' {
		end := skipString(b, i)
		if end > len(b) || end < i+2 {
			return -1
		}
		same := equalKey(b[i+1:end-1], key)
		i = skipWhite(b, end)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipWhite(b, i+1)
		if same {
			return i
		}
		if i = nextItem(b, i); i < 0 {
			return -1
		}
	}
	return -1
}

// item gives where item n of the array at i begins, -1 if there are not so many.
func item(b []byte, i, n int) int {
	i = skipWhite(b, i+1)
	if i >= len(b) || b[i] == ']' {
		return -1
	}
	return ahead(b, i, n)
}

// nextItem gives where the item or member behind the value at i begins, -1 if that is the last one.
func nextItem(b []byte, i int) int {
	end := skipValue(b, i)
	if end <= i {
		return -1
	}
	i = skipWhite(b, end)
	if i >= len(b) || b[i] != ',' {
		return -1
	}
	return skipWhite(b, i+1)
}

// equalKey compares a key as it stands in a text with one without escapes.
func equalKey(raw []byte, key string) bool {
	if len(raw) == len(key) { // an escape is longer than what it stands for, so raw has none, or is another key
		return string(raw) == key && strings.IndexByte(key, '\\') < 0
	}
	return len(raw) > len(key) && bytes.IndexByte(raw, '\\') >= 0 && string(appendUnescaped(nil, raw)) == key
}

func skipWhite(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// skipString gives the index behind the string whose opening quote is at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b) + 1
		}
		quote := i + n
		slashes := 0
		for slashes < n && b[quote-1-slashes] == '\\' {
			slashes++
		}
		i = quote + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b) + 1
}

// skipValue gives the index behind the value at i; i itself where there is none.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return min(skipString(b, i), len(b))
	case '{', '[':
		return skipContainer(b, i)
	}
	for i < len(b) && !isDelimiter[b[i]] {
		i++
	}
	return i
}

// isDelimiter marks the bytes that end a number, true, false or null.
var isDelimiter = [256]bool{' ': true, '\n': true, '\t': true, '\r': true, ',': true, ']': true, '}': true, ':': true, '"': true, '[': true, '{': true}

// skipContainer gives the index behind the object or array at i.
func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}
