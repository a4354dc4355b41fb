package expression

import (
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// number reads a number: one of JSON without a sign.
func (s *scanner) number() *fault.Error {
	end := s.at
	for end < len(s.text) && s.goesOn(end) {
		end++
	}
	text := s.text[s.at:end]
	c := jsontape.Cursor{Src: []byte(text)}
	if _, ok := c.Number(); !ok || c.At < len(text) {
		return s.wrong(s.at, "%s is no number", clip(text)).WithHint("write numbers as in JSON: 1000, 0.5, 1e6")
	}
	d, why := parseNumber(c.Src)
	if why != "" {
		return s.wrong(s.at, "%s %s", clip(text), why)
	}
	s.constant(end, numberOf(d))
	return nil
}

// goesOn is whether the byte at i belongs to the number that is read, or makes it none.
func (s *scanner) goesOn(i int) bool {
	switch c := s.text[i]; {
	case c == '+' || c == '-':
		return i > s.at && (s.text[i-1] == 'e' || s.text[i-1] == 'E')
	case c >= utf8.RuneSelf:
		return false
	default:
		return c == '.' || jsontape.IsDigit(c) || isLetter(rune(c))
	}
}

func (s *scanner) constant(end int, v value) {
	s.add(token{kind: constant, end: end, literal: &literal{value: v, text: s.text[s.at:end]}})
}

// quoted reads a string. Behind matches it is a pattern, and backslashes are the pattern's.
func (s *scanner) quoted(quote byte) *fault.Error {
	end := s.at + 1
	for end < len(s.text) && s.text[end] != quote {
		if s.text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(s.text) {
		return s.wrong(s.at, "the string that begins here has no end").
			WithHint(`close it with %c; within it write \%c`, quote, quote)
	}
	inside := s.text[s.at+1 : end]
	if n := len(s.tokens); n == 0 || s.text[s.tokens[n-1].at:s.tokens[n-1].end] != "matches" {
		text, ok := unescape(inside)
		if !ok {
			return s.wrong(s.at, "a backslash or a control character in the string can't be read").
				WithHint(`write \\ for a backslash, \n for a new line, \t, \", \' or \u00e9`)
		}
		inside = text
	}
	text, refers := s.withoutEscapes(inside)
	if refers {
		return s.wrong(s.at, "a reference stands within a string, where it is only text").
			WithHint("write the reference without quotes and braces, with texts around it as concat(\"…\", $ref:…); " +
				"where the text is meant, double its dollar: $$")
	}
	s.constant(end+1, textOf(text))
	return nil
}

// unescape returns what the inside of a string stands for: its escapes are those of JSON, and \'.
func unescape(inside string) (text string, ok bool) {
	b := []byte{'"'}
	for i := 0; i < len(inside); i++ {
		switch {
		case inside[i] == '"':
			b = append(b, '\\')
		case inside[i] == '\\' && inside[i+1] == '\'':
			i++
		case inside[i] == '\\':
			b = append(b, '\\')
			i++
		}
		b = append(b, inside[i])
	}
	c := jsontape.Cursor{Src: append(b, '"')}
	flags, bad := c.Quoted()
	if bad != "" || c.At != len(c.Src) || flags&jsontape.BadText != 0 {
		return "", false
	}
	return jsontape.Unquoted(c.Src), true
}

// withoutEscapes returns a string whose doubled dollars before what would be a reference are single, as everywhere in a
// plan; refers is whether a reference stands there undoubled.
func (s *scanner) withoutEscapes(in string) (out string, refers bool) {
	if strings.IndexByte(in, '$') < 0 {
		return in, false
	}
	var b strings.Builder
	bare := strings.ReplaceAll(in, "${", " $") // where the references in braces stand as those without
	for i := 0; i < len(in); {
		n := 0
		for i+n < len(in) && in[i+n] == '$' {
			n++
		}
		if n == 0 {
			b.WriteByte(in[i])
			i++
			continue
		}
		keep := n
		end, why := s.read(in, i+n-1)
		if end == 0 && why == "" && i+n < len(in) && in[i+n] == '{' {
			end, why = s.read(bare, i+n)
		}
		if end > 0 || why != "" {
			if n%2 == 1 {
				return "", true
			}
			keep = n / 2
		}
		b.WriteString(in[i : i+keep])
		i += n
	}
	return b.String(), false
}
