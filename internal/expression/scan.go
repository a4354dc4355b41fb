package expression

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// maxTokens bounds what is parsed, and with that how deep the parser recurses: MaxNodes in twice the brackets that
// anybody needs.
const maxTokens = 1000

// token is a piece of the text.
type token struct {
	kind    tokenKind
	at, end int      // in the text
	literal *literal // of a constant
	ref     int      // of a reference: its index in scanner.refs
}

type tokenKind uint8

const (
	operator tokenKind = iota // or a bracket, or a comma
	name                      // of a function, or a mistake
	constant
	referred
)

// scanner takes a text apart.
type scanner struct {
	text   string
	read   Reader
	at     int
	tokens []token
	refs   []usedRef
}

// words are the operators that are words.
var words = []string{"and", "or", "not", "in", "contains", "startsWith", "endsWith", "matches"}

var constants = map[string]value{
	"true": {kind: boolean, yes: true}, "false": {kind: boolean}, "null": {}, "nil": {},
}

func (s *scanner) scan() *fault.Error {
	if len(s.text) > MaxText {
		return invalid("the expression has %d bytes, and %d are the most", len(s.text), MaxText).WithHint(shorter)
	}
	s.tokens = make([]token, 0, 16)
	for {
		for s.at < len(s.text) && jsontape.IsSpace(s.text[s.at]) {
			s.at++
		}
		if s.at == len(s.text) {
			break
		}
		if len(s.tokens) == maxTokens {
			return s.wrong(s.at, "%d words, operators and brackets are the most of an expression", maxTokens).WithHint(shorter)
		}
		if err := s.next(); err != nil {
			return err
		}
	}
	if len(s.tokens) == 0 {
		return invalid("the expression is empty").WithHint("write what to decide by, such as `$ref:step.count > 0`")
	}
	return nil
}

// next reads one token.
func (s *scanner) next() *fault.Error {
	switch c := s.text[s.at]; {
	case c == '$':
		return s.reference()
	case c == '"' || c == '\'':
		return s.quoted(c)
	case jsontape.IsDigit(c):
		return s.number()
	case c == '.':
		return s.bare()
	case c >= utf8.RuneSelf:
		if end, why := s.read(s.text, s.at); end > s.at || why != "" {
			return s.referenceTo(end, why)
		}
		return s.word()
	case isLetter(rune(c)):
		return s.word()
	}
	return s.mark()
}

func (s *scanner) add(t token) {
	t.at, s.at = s.at, t.end
	s.tokens = append(s.tokens, t)
}

// word reads an operator, a constant, or a name.
func (s *scanner) word() *fault.Error {
	end := s.at
	for end < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[end:])
		if !isLetter(r) && !unicode.IsDigit(r) {
			break
		}
		end += n
	}
	word := s.text[s.at:end]
	if word == "" {
		return s.stranger()
	}
	t := token{kind: name, end: end}
	if v, ok := constants[word]; ok {
		t.kind, t.literal = constant, &literal{value: v, text: word}
	} else if slices.Contains(words, word) {
		t.kind = operator
	}
	s.add(t)
	return nil
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// mark reads an operator that is no word, a bracket or a comma.
func (s *scanner) mark() *fault.Error {
	rest := s.text[s.at:]
	for _, m := range marks {
		switch {
		case !strings.HasPrefix(rest, m.text):
		case m.hint == "":
			s.add(token{kind: operator, end: s.at + len(m.text)})
			return nil
		case m.text == "|" && s.filter() != "":
			return s.wrong(s.at, "%q is no operator", m.text).WithHint("%s", s.filter())
		default:
			return s.wrong(s.at, "%q is no operator", m.text).WithHint("%s", m.hint)
		}
	}
	return s.stranger()
}

// reference reads a reference, from its "$" on.
func (s *scanner) reference() *fault.Error { return s.referenceTo(s.read(s.text, s.at)) }

// referenceTo reads the reference that ends there, or why there is none.
func (s *scanner) referenceTo(end int, why string) *fault.Error {
	end = min(end, len(s.text))
	switch {
	case why != "":
		return s.wrong(s.at, "%s is no reference: %s", clip(s.text[s.at:]), why).WithHint(hintReference)
	case end <= s.at:
		return s.noReference()
	}
	text := s.text[s.at:end]
	if i := minusInPath(text); i >= 0 {
		return s.minus(text, i)
	}
	i := slices.IndexFunc(s.refs, func(r usedRef) bool { return r.text == text })
	if i < 0 {
		i = len(s.refs)
		s.refs = append(s.refs, usedRef{text: text})
	}
	s.add(token{kind: referred, end: end, ref: i})
	return nil
}

// minusInPath returns where a bare key of a reference has a "-", which is a difference as often as a part of the key;
// -1 where none has. In the id, which can be written in one way only, it is a part of the id.
func minusInPath(ref string) int {
	for i := max(strings.IndexAny(ref, ".["), 0); i < len(ref) && i >= 0; i++ {
		switch {
		case ref[i] == '-' && strings.ContainsAny(ref[:i], ".["):
			return i
		case ref[i] == '[' && i+1 < len(ref) && ref[i+1] == '"':
			i = jsontape.SkipString([]byte(ref), i+1)
		}
	}
	return -1
}
