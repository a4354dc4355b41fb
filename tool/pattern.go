package tool

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// patterns compiles the regular expressions of one schema and counts what they cost. RE2 runs in time linear to its
// text, but a short pattern may compile to a large program: (a{1000}){…}.
type patterns struct {
	size int
	done map[string]*regexp.Regexp // each is asked for twice: by the meta-schema, and to be used
	told bool                      // that they are too large, all together
}

const patternsAre = "patterns are RE2, without look-around and back-references: "

func (p *patterns) compile(raw string) (jsonschema.Regexp, error) {
	if re := p.done[raw]; re != nil {
		return re, nil
	}
	re, err := p.compileNew(ecma(raw))
	if err != nil {
		return nil, err
	}
	if p.done == nil {
		p.done = map[string]*regexp.Regexp{}
	}
	p.done[raw] = re
	return re, nil
}

func (p *patterns) compileNew(s string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf(patternsAre+"%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if p.size += patternSize(tree, MaxPatternSize); p.size > MaxPatternSize {
		return nil, fmt.Errorf("the patterns are too large, at most %d instructions are allowed", MaxPatternSize)
	}
	return regexp.Compile(s)
}

// patternSize estimates the instructions of a pattern without expanding its repetitions, up to limit.
func patternSize(r *syntax.Regexp, limit int) int {
	n := 1 + len(r.Rune)
	for _, sub := range r.Sub {
		n += patternSize(sub, limit)
	}
	if r.Op == syntax.OpRepeat {
		n *= max(r.Max, r.Min+1, 1)
	}
	return min(n, limit+1)
}

// ecma rewrites the escape that ECMA 262 has, RE2 lacks and schemas do use: \uXXXX.
func ecma(s string) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if s[i+1] == 'u' && i+6 <= len(s) && isHex(s[i+2:i+6]) {
			b.WriteString(`\x{` + s[i+2:i+6] + `}`)
			i += 5
			continue
		}
		b.WriteString(s[i : i+2])
		i++
	}
	return b.String()
}

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
			return false
		}
	}
	return true
}

// Kinds of what ECMA 262 has and RE2 lacks, by how they begin.
var lacking = []struct{ begins, name, hint string }{
	{"(?=", "a look-ahead", `write each condition as a pattern of its own: "allOf": [{"pattern": "…"}, {"pattern": "…"}]`},
	{"(?!", "a negative look-ahead", `write what must not match beside it: "not": {"pattern": "…"}`},
	{"(?<=", "a look-behind", "write what stands before as part of the pattern"},
	{"(?<!", "a negative look-behind", `write what must not match beside it: "not": {"pattern": "…"}`},
	{"(?>", "an atomic group", "write (?: in its place"},
	{`\k<`, "a back-reference", "write out what may be repeated, or leave the check to the tool"},
}

// unsupported names what in a pattern RE2 doesn't have, and says what to write instead; "" for none of the usual ones.
func unsupported(raw string) (message, hint string) {
	class := false
	for i := 0; i < len(raw); i++ {
		for _, l := range lacking {
			if !class && strings.HasPrefix(raw[i:], l.begins) {
				return fmt.Sprintf("the pattern has %s, %s…%s, and patterns, which are RE2, can't have that", l.name, l.begins,
					closing(l.begins)), l.hint
			}
		}
		switch c := raw[i]; {
		case c == '\\' && i+1 < len(raw):
			if d := raw[i+1]; !class && d >= '1' && d <= '9' {
				return fmt.Sprintf(`the pattern has a back-reference, \%c, and patterns, which are RE2, can't have that`, d),
					"write out what may be repeated, or leave the check to the tool"
			}
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		}
	}
	return "", ""
}

func closing(begins string) string {
	if begins[0] == '(' {
		return ")"
	}
	return ">"
}
