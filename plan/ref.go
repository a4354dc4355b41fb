package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// Limits of references (plan language, "limit_exceeded").
const (
	// MaxRefs is the most references in the arguments of one step; each alternative counts.
	MaxRefs = 4096
	// MaxPath is the longest path of a reference, in bytes.
	MaxPath = 1024
	// MaxID is the longest step id, in bytes.
	MaxID = subjects.MaxStepID
)

// elem is one element of a path. What it means depends on the value that it goes into (plan language, rule 6).
type elem struct {
	key   string // the member of an object; unused for [n] and [*]
	index int    // the item of an array, or one of:
	isKey bool   // may be a member of an object; [n] may not
}

const (
	noIndex   = -1 // never an item
	hugeIndex = -2 // an item that no array has: the number is beyond int
	everyItem = -3 // [*]: goes on with each item (rule 8)
)

func (e *elem) isEvery() bool { return e.index == everyItem }

// ref is a reference: a step and a path into its result.
type ref struct {
	id   string
	path []elem
	text string // id and path as written
	of   aspect
}

// aspect is what a reference is after.
type aspect uint8

const (
	itsResult aspect = iota // $ref:
	itsError                // $error:
	itsStatus               // $status:
	itsInput                // $input, of the plan
	itsLast                 // $last, of the iteration before
	itsIndex                // $index, of the iteration
)

var prefixes = [...]string{itsResult: refPrefix, itsError: "$error:", itsStatus: "$status:", itsInput: "$", itsLast: "$", itsIndex: "$"}

// isWord reports whether it is referred to by a word alone, which names no step.
func (a aspect) isWord() bool { return a >= itsInput }

// prefix is what a reference begins with.
func (a aspect) prefix() string { return prefixes[a] }

// refParser reads references. The paths of all references of a plan lie in one slice; pieces and their references are
// good until the next string is taken apart.
type refParser struct {
	language1 bool // what is reserved is text (Limits.Language1)
	input     bool // the plan has an input
	turn      bool // it is of a step that is repeated: there is one before, and a number

	elems  []elem
	pieces []piece
	refs   []ref
}

// one returns a slice of one reference.
func (p *refParser) one(r ref) []ref {
	n := len(p.refs)
	p.refs = append(p.refs, r)
	return p.refs[n : n+1 : n+1]
}

// parse reads the longest reference at s[i:], which is id and path without any prefix. end is where it ends; why is set
// where there is none, or where what follows looks like a path but isn't one.
func (p *refParser) parse(s string, i int) (r ref, end int, why string) {
	start := i
	for i < len(s) && subjects.IsPlain(s[i]) {
		i++
	}
	switch r.id = s[start:i]; {
	case r.id == "":
		return r, i, "a step's id is expected"
	case len(r.id) > MaxID:
		return r, i, fmt.Sprintf("a step's id has at most %d characters", MaxID)
	}
	first := len(p.elems)
	for i < len(s) && why == "" {
		next := i
		switch s[i] {
		case '.':
			next = p.dot(s, i)
		case '[':
			next, why = p.bracket(s, i)
		}
		if next == i {
			break
		}
		i = next
	}
	r.path = p.elems[first:len(p.elems):len(p.elems)]
	r.text = s[start:i]
	return r, i, why
}

// dot reads "." key; it gives i itself where there is no key.
func (p *refParser) dot(s string, i int) int {
	j := i + 1
	for j < len(s) && subjects.IsPlain(s[j]) {
		j++
	}
	if j == i+1 {
		return i
	}
	key := s[i+1 : j]
	p.elems = append(p.elems, elem{key: key, index: indexOf(key), isKey: true})
	return j
}

// bracket reads "[" index "]", "[" JSON-string "]" or "[*]".
func (p *refParser) bracket(s string, i int) (end int, why string) {
	j := i + 1
	if j < len(s) && s[j] == '"' {
		return p.quoted(s, i)
	}
	if strings.HasPrefix(s[j:], "*]") {
		p.elems = append(p.elems, elem{index: everyItem})
		return j + 2, ""
	}
	for j < len(s) && subjects.IsPlain(s[j]) {
		j++
	}
	n := indexOf(s[i+1 : j])
	switch {
	case j == len(s) || s[j] != ']':
		if closing := strings.IndexByte(s[i:min(len(s), i+MaxPath)], ']'); closing < 0 {
			return i, "the bracket is not closed"
		}
		return i, badIndex
	case n == noIndex:
		return i, badIndex
	}
	p.elems = append(p.elems, elem{index: n})
	return j + 1, ""
}

const badIndex = `in brackets stands an index (0, 1, 2, …), * for every item, or a key in double quotes (["key"])`

// quoted reads ["key"], where "key" is a JSON string.
func (p *refParser) quoted(s string, i int) (end int, why string) {
	j := i + 2
	for j < len(s) && s[j] != '"' {
		if s[j] == '\\' {
			j++
		}
		j++
	}
	if j >= len(s) {
		return i, "the quote in the bracket is not closed"
	}
	raw := s[i+2 : j]
	if strings.IndexByte(raw, '\\') < 0 && plainText(raw) {
		p.elems = append(p.elems, elem{key: raw, index: noIndex, isKey: true})
	} else {
		c := jsontape.Cursor{Src: []byte(s[i+1 : j+1])}
		if flags, bad := c.Quoted(); bad != "" || flags&jsontape.BadText != 0 || c.At != len(c.Src) {
			return i, "the key in the bracket is not a JSON string"
		}
		p.elems = append(p.elems, elem{key: string(jsontape.AppendUnescaped(nil, raw)), index: noIndex, isKey: true})
	}
	if j+1 >= len(s) || s[j+1] != ']' {
		p.elems = p.elems[:len(p.elems)-1]
		return i, "the bracket is not closed"
	}
	return j + 2, ""
}

// plainText reports whether s has no control characters; it is UTF-8 already.
func plainText(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 {
			return false
		}
	}
	return true
}

// indexOf returns the index that digits stand for, noIndex for anything else (a leading zero too).
func indexOf(s string) int {
	if s == "" || s[0] == '0' && len(s) > 1 {
		return noIndex
	}
	for i := 0; i < len(s); i++ {
		if !jsontape.IsDigit(s[i]) {
			return noIndex
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return hugeIndex
	}
	return n
}

// pathLength returns the length of the path, in bytes.
func (r ref) pathLength() int { return len(r.text) - len(r.id) }

// reads tells where a reference in an expression ends (expression.Reader).
func (p *refParser) reads(s string, i int) (end int, why string) {
	_, start := p.prefixOf(s[i:])
	if start == 0 {
		return 0, ""
	}
	r, end, why := p.parse(s, i+start)
	p.forget(r)
	return end, why
}

// broken explains why a string that has to be one reference is none. start is where its id begins, end where it stops
// being a reference.
func broken(s string, start, end int, why string) piece {
	m := &mistake{why: why}
	rest := s[min(end, len(s)):]
	if why == "" {
		m.why = unexpected(rest)
	}
	m.hint, m.good = brokenHint(s[min(start, len(s)):min(end, len(s))], rest)
	m.why = fmt.Sprintf("%s is no reference: %s", clip(s), m.why)
	return piece{broken: m}
}

// brokenText explains why a reference within text is none. i is where it begins.
func brokenText(s string, i, start, end int, why string) piece {
	rest := s[min(end, len(s)):]
	if why == "" {
		why = unexpected(rest)
	}
	shown := s[i:min(len(s), max(end, start)+8)]
	m := &mistake{why: fmt.Sprintf("%s is no reference: %s", clip(shown), why)}
	id := s[min(start, len(s)):min(end, len(s))]
	switch {
	case id == "":
		m.hint = "write $ref:<id> or ${ref:<id>}; for the plain text write $$ref:"
	case why == unclosed:
		m.hint, m.good = "write %s", id
	case strings.HasPrefix(why, "there are no alternatives"):
		m.hint = "alternatives have to be the whole string: \"$ref:a || $ref:b\"; put the text together in another step"
	default:
		m.hint, m.good = brokenHint(id, rest)
	}
	return piece{broken: m}
}

// unclosed is why ${ref:a is no reference.
const unclosed = "${ref: is not closed by }"

// unexpected names what follows a reference and can't.
func unexpected(rest string) string {
	if rest == "" {
		return "it ends too early"
	}
	r, n := utf8.DecodeRuneInString(rest)
	if r == '.' && len(rest) > 1 {
		next, _ := utf8.DecodeRuneInString(rest[1:])
		return fmt.Sprintf("%q can't follow the dot", next)
	}
	if r == '.' {
		return "a key is expected after the dot"
	}
	return fmt.Sprintf("%q can't follow %s", rest[:n], "the reference")
}

// brokenHint says how to mend a reference that was right up to good.
func brokenHint(good, rest string) (hint, upTo string) {
	const grammar = `a reference is $ref:<id> and a path of .key, [0], [*] and ["any key"]`
	switch {
	case good == "":
		return "write $ref:<id>, as in $ref:step_1.items[0].name", ""
	case strings.HasPrefix(rest, "[") && !strings.HasPrefix(rest, "[*"):
		return grammar + "; negative indexes, slices and queries don't exist", ""
	case strings.Contains(clip(rest), "*"):
		return grammar + "; for what every item of an array has, write [*], as in $ref:s.items[*].name", ""
	case strings.HasPrefix(rest, ".@"), strings.HasPrefix(rest, ".#"), strings.HasPrefix(rest, "|"),
		strings.HasPrefix(rest, ".["), strings.HasPrefix(rest, ".{"):
		return grammar + "; there are no queries or modifiers: refer to the whole value, or let a tool pick from it", ""
	case strings.HasPrefix(rest, "("):
		return grammar + "; functions don't exist: let a tool do it", ""
	}
	return "where text follows, write %s; " + grammar, good
}

// clip shortens what somebody else wrote before it goes into a message.
func clip(s string) string { return text.Clip(s, 80) }
