package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/internal/text"
)

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
