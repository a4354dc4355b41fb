package expression

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
)

// maxWeight is the most characters, classes and operators of a pattern once its repetitions are written out.
const maxWeight = 1000

// match is "matches".
type match struct {
	at     int
	x      node
	re     *regexp.Regexp
	weight int
}

// match makes the node of a use of matches, whose pattern stands at t.
func (p *parser) match(at int, x, right node, t token) (node, *fault.Error) {
	l, ok := right.(*literal)
	if !ok || l.value.kind != str {
		return nil, p.wrong(at, "matches takes a pattern in quotes, which is the same each time").
			WithHint("write `$ref:step.code matches '^[A-Z]{3}$'`; another value is looked for by contains")
	}
	if p.matches++; p.matches > MaxMatches {
		return nil, p.wrong(at, "%d uses of matches are the most of an expression", MaxMatches).WithHint(shorter)
	}
	re, weight, err := p.pattern(t, l.value.text)
	return &match{at: at, x: x, re: re, weight: weight}, err
}

// pattern compiles a pattern. What would take long to compile is refused before.
func (s *scanner) pattern(t token, text string) (*regexp.Regexp, int, *fault.Error) {
	switch {
	case len(text) > MaxPattern:
		return nil, 0, s.wrong(t.at, "the pattern has %d bytes, and %d are the most", len(text), MaxPattern).
			WithHint("use several of them, with `or`")
	case escapedTwice(text):
		return nil, 0, s.wrong(t.at, `the pattern has a backslash that is escaped, and what follows looks like \d or \.`).
			WithHint(`one backslash is enough here: '^\d+$'; where a backslash itself is meant, write [\\]`)
	case wideFold(text):
		return nil, 0, s.wrong(t.at, "(?i) does not go with a range of other characters than ASCII").
			WithHint("take `lower(…)` of what is matched")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, s.wrong(t.at, "the pattern is none: %s", clip(err.Error())).
			WithHint("patterns are those of RE2: github.com/google/re2/wiki/Syntax")
	}
	weight := weigh(parsed)
	if weight > maxWeight {
		return nil, 0, s.wrong(t.at, "the pattern's repetitions make it too large").
			WithHint("repeat less, or write `+` or `*`")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, 0, s.wrong(t.at, "the pattern is none: %s", clip(err.Error()))
	}
	return re, weight, nil
}

// weigh returns how large a pattern becomes when its repetitions are written out; any number above maxWeight where it
// is larger than that.
func weigh(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += weigh(sub); n > maxWeight {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// escapedTwice reports whether a pattern has been escaped for a string that it does not stand in: it would match
// backslashes, and so nothing.
func escapedTwice(pattern string) bool {
	for i := 0; i+2 < len(pattern); i++ {
		if pattern[i] != '\\' {
			continue
		}
		if pattern[i+1] == '\\' && strings.IndexByte("dDwWsSbB.", pattern[i+2]) >= 0 {
			return true
		}
		i++
	}
	return false
}

// wideFold reports whether a pattern ignores case over a range that is not of ASCII: to compile it the package regexp
// goes through the range, character by character.
func wideFold(pattern string) bool {
	if !strings.Contains(pattern, "(?") {
		return false
	}
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '-' && (pattern[i+1] >= utf8.RuneSelf || strings.HasPrefix(pattern[i+1:], `\x{`)) {
			return true
		}
	}
	return false
}

func (x *match) eval(e *evaluation) (value, *fault.Error) {
	v, err := x.x.eval(e)
	if err != nil || v.kind == null {
		return value{}, err
	}
	e.op, e.at = "matches", x.at
	if err := e.want(str, x.x, v, texts); err != nil {
		return value{}, err
	}
	text, err := e.string(v)
	if err != nil {
		return value{}, err
	}
	if err := e.spend(len(text) * x.weight); err != nil {
		return value{}, err
	}
	return truth(x.re.MatchString(text)), nil
}
