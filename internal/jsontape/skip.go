package jsontape

import (
	"bytes"
	"strings"
)

// The functions of this file take text that was checked before. Of anything else they make some way or none, but never
// read beyond it.

// Member returns where the value of a key begins in the object at i, -1 if there is none.
func Member(b []byte, i int, key string) int {
	i = SkipSpace(b, i+1)
	for i < len(b) && b[i] == '"' {
		end := SkipString(b, i)
		if end > len(b) || end < i+2 {
			return -1
		}
		same := equalKey(b[i+1:end-1], key)
		i = SkipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i = SkipSpace(b, i+1)
		if same {
			return i
		}
		if i = NextItem(b, i); i < 0 {
			return -1
		}
	}
	return -1
}

// Members calls each with the key, quotes and escapes included, and the value of each member of an object, until each
// reports false. It reports whether there was an object and each never did.
func Members(object []byte, each func(key, value []byte) bool) bool {
	i := SkipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return false
	}
	for i = SkipSpace(object, i+1); i < len(object) && object[i] == '"'; {
		key := object[i:min(SkipString(object, i), len(object))]
		i = min(SkipSpace(object, SkipSpace(object, i+len(key))+1), len(object))
		end := SkipValue(object, i)
		if !each(key, object[i:end:end]) {
			return false
		}
		if i = SkipSpace(object, end); i < len(object) && object[i] == ',' {
			i = SkipSpace(object, i+1)
		}
	}
	return true
}

// Item returns where item n of the array at i begins, -1 if there are not so many.
func Item(b []byte, i, n int) int {
	i = SkipSpace(b, i+1)
	if i >= len(b) || b[i] == ']' {
		return -1
	}
	return Ahead(b, i, n)
}

// NextItem returns where the item or member behind the value at i begins, -1 if that is the last one.
func NextItem(b []byte, i int) int {
	end := SkipValue(b, i)
	if end <= i {
		return -1
	}
	i = SkipSpace(b, end)
	if i >= len(b) || b[i] != ',' {
		return -1
	}
	return SkipSpace(b, i+1)
}

// Ahead returns where the n-th item behind the one at i begins, -1 if there are not so many.
func Ahead(b []byte, i, n int) int {
	for ; n > 0 && i >= 0; n-- {
		i = NextItem(b, i)
	}
	return i
}

// equalKey compares a key as it stands in a text with one without escapes.
func equalKey(raw []byte, key string) bool {
	if len(raw) == len(key) { // an escape is longer than what it stands for, so raw has none, or is another key
		return string(raw) == key && strings.IndexByte(key, '\\') < 0
	}
	return len(raw) > len(key) && bytes.IndexByte(raw, '\\') >= 0 && string(AppendUnescaped(nil, raw)) == key
}

// SkipSpace returns the index of the first byte from i on that is no white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// SkipString returns the index behind the string whose opening quote is at i.
func SkipString(b []byte, i int) int {
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

// SkipValue returns the index behind the value at i; i itself where there is none.
func SkipValue(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return min(SkipString(b, i), len(b))
	case '{', '[':
		return skipContainer(b, i)
	}
	for i < len(b) && !isDelimiter[b[i]] {
		i++
	}
	return i
}

// isDelimiter marks the bytes that end a number, true, false or null.
var isDelimiter = [256]bool{
	' ': true, '\n': true, '\t': true, '\r': true,
	',': true, ':': true, '"': true, '[': true, ']': true, '{': true, '}': true,
}

// skipContainer returns the index behind the object or array at i.
func skipContainer(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = SkipString(b, i)
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
