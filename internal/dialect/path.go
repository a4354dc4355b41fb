package dialect

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// elem is one element of a path.
type elem struct {
	key   string // of an object; unused for the others
	index int    // of an array, where kind says so
	kind  elemKind
}

type elemKind uint8

const (
	isKey   elemKind = iota // .key or ["key"]
	isIndex                 // [n]
	isEvery                 // [*]
)

// path is a way into the state, the input or a result.
type path []elem

// maxIndex is the largest index that a path may have: nothing has more items.
const maxIndex = 1 << 30

// maxPath is the most elements of a path: no JSON nests deeper.
const maxPath = 64

// parsePath reads the longest path at s[i:]. why says where what looks like a path is none.
func parsePath(s string, i int) (p path, end int, why string) {
	for i < len(s) {
		var e elem
		next := i
		switch s[i] {
		case '.':
			if next = plainEnd(s, i+1); next == i+1 {
				return p, i, ""
			}
			e.key = s[i+1 : next]
		case '[':
			if e, next, why = parseBracket(s, i); why != "" {
				return p, i, why
			}
		default:
			return p, i, ""
		}
		if len(p) == maxPath {
			return p, i, fmt.Sprintf("a path has at most %d parts", maxPath)
		}
		p, i = append(p, e), next
	}
	return p, i, ""
}

// plainEnd returns where a key without quotes ends.
func plainEnd(s string, i int) int {
	for i < len(s) && subjects.IsPlain(s[i]) {
		i++
	}
	return i
}

// parseBracket reads [n], [*] or ["key"].
func parseBracket(s string, i int) (e elem, end int, why string) {
	const what = `in brackets stands an index (0, 1, 2, …), * for every item, or a key in double quotes (["key"])`
	rest := s[i+1:]
	switch {
	case strings.HasPrefix(rest, "*]"):
		return elem{kind: isEvery}, i + 3, ""
	case strings.HasPrefix(rest, `"`):
		closing := jsontape.SkipString([]byte(s), i+1)
		if closing <= i+1 || closing >= len(s) || s[closing] != ']' || json.Unmarshal([]byte(s[i+1:closing]), &e.key) != nil {
			return e, i, "the key in the bracket is not a JSON string, or the bracket is not closed"
		}
		return e, closing + 1, ""
	}
	digits, _, closed := strings.Cut(rest, "]")
	n, err := strconv.Atoi(digits)
	if !closed || err != nil || n < 0 || n > maxIndex || strconv.Itoa(n) != digits {
		return e, i, what
	}
	return elem{kind: isIndex, index: n}, i + 1 + len(digits) + 1, ""
}

// String writes a path as references do, so that it can be read again; a key with a "-" in brackets, which conditions
// need.
func (p path) String() string {
	var b strings.Builder
	for _, e := range p {
		switch {
		case e.kind == isIndex:
			fmt.Fprintf(&b, "[%d]", e.index)
		case e.kind == isEvery:
			b.WriteString("[*]")
		case e.key != "" && plainEnd(e.key, 0) == len(e.key) && !strings.Contains(e.key, "-"):
			b.WriteString("." + e.key)
		default:
			b.Write(append(jsontape.AppendQuoted([]byte("["), e.key), ']'))
		}
	}
	return b.String()
}

// keysOnly reports whether a path is made of keys, so that something can be written there.
func (p path) keysOnly() bool {
	for _, e := range p {
		if e.kind != isKey {
			return false
		}
	}
	return true
}
