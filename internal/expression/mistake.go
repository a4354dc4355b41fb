package expression

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

const (
	shorter       = "calculate in several steps, each with a shorter expression"
	hintReference = "write `$ref:step.path`; keys of more than letters, digits and _ in brackets: `$ref:step[\"the key\"]`"
)

// marks are what is neither a word nor a literal, longer before shorter. Those with a hint are mistakes.
var marks = []struct{ text, hint string }{
	{"===", "write `==`"}, {"!==", "write `!=`"},
	{"==", ""}, {"!=", ""}, {"<=", ""}, {">=", ""}, {"&&", ""}, {"||", ""}, {"??", ""},
	{"<>", "write `!=`"}, {"=<", "write `<=`"}, {"=>", "write `>=`"},
	{"**", "there are no powers; write `x * x`"},
	{"//", "write `(a - a % b) / b` for the whole part of a quotient, `/` to divide; there are no comments"}, {"/*", "there are no comments"},
	{"?.", "a reference to nothing is null anyway: write `$ref:step.path`"},
	{"<", ""}, {">", ""}, {"+", ""}, {"-", ""}, {"*", ""}, {"/", ""}, {"%", ""}, {"!", ""}, {"?", ""}, {":", ""},
	{"(", ""}, {")", ""}, {"[", ""}, {"]", ""}, {",", ""},
	{"=", "write `==` to compare"},
	{"&", "write `and`"},
	{"|", "write `or`, or `??` for another value in place of null"},
	{"^", "there are no powers; write `x * x`"},
	{"`", "put strings in \" or '"},
	{";", "an expression is one value; more of them are several steps"},
	{"{", "references stand bare: `$ref:step.path`; an object is empty where `len(…) == 0`; one is written outside of the " +
		"expression, as JSON with a $calc for each value, or made of another by `put` and `merge`"},
	{"#", "there are no comments, and no functions of one's own"},
	{"}", "references stand bare: `$ref:step.path`; an object is empty where `len(…) == 0`; one is written outside of the " +
		"expression, as JSON with a $calc for each value, or made of another by `put` and `merge`"},
}

// meant are words of other languages, and what stands for them here.
var meant = map[string]string{
	"none": "null", "undefined": "null", "empty": `""`, "is": "==", "eq": "==", "equals": "==", "ne": "!=",
	"gt": ">", "ge": ">=",
	"lt": "<", "le": "<=", "mod": "%", "includes": "contains", "has": "contains", "length": "len(…)", "size": "len(…)",
	"if": "condition ? a : b", "then": "condition ? a : b", "else": "condition ? a : b", "case": "condition ? a : b",
	"avg": "sum(…) / len(…)", "average": "sum(…) / len(…)", "mean": "sum(…) / len(…)", "count": "len(…)",
	"tolower": "lower(…)", "lowercase": "lower(…)", "toupper": "upper(…)", "uppercase": "upper(…)", "strip": "trim(…)",
	"floor": "(x % 1 < 0 ? x - x % 1 - 1 : x - x % 1)", "ceil": "(x % 1 > 0 ? x - x % 1 + 1 : x - x % 1)", "trunc": "x - x % 1",
	"coalesce": "a ?? b", "ifnull": "a ?? b", "between": "a <= x and x <= b",
	"regex": "matches", "like": "contains",
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidCondition, format, args...)
}

// wrong refuses what stands at a byte of the text.
func (s *scanner) wrong(at int, format string, args ...any) *fault.Error {
	return invalid("at byte %d: "+format, append([]any{at}, args...)...)
}

func clip(s string) string { return text.Clip(s, 60) }

// stranger refuses a character that no expression has.
func (s *scanner) stranger() *fault.Error {
	r, n := utf8.DecodeRuneInString(s.text[s.at:])
	e := s.wrong(s.at, "%q means nothing in an expression", r)
	switch {
	case r == utf8.RuneError && n <= 1:
		return s.wrong(s.at, "the expression is no UTF-8")
	case strings.ContainsRune("‘’“”„«»‹›", r):
		return e.WithHint("put strings in \" or '")
	case unicode.IsSpace(r):
		return e.WithHint("write a plain space")
	case strings.ContainsRune("−–—×·÷≤≥≠", r):
		return e.WithHint("operators are ASCII: - * / <= >= !=")
	}
	return e.WithHint("put text in quotes")
}

// bare refuses a path that begins with no reference.
func (s *scanner) bare() *fault.Error {
	from := s.at
	if n := len(s.tokens); n > 0 && s.tokens[n-1].kind == name && s.tokens[n-1].end == s.at {
		from = s.tokens[n-1].at
	}
	end := from
	for end < len(s.text) && (jsontape.IsDigit(s.text[end]) || strings.IndexByte("_.", s.text[end]) >= 0 ||
		s.text[end] < utf8.RuneSelf && isLetter(rune(s.text[end]))) {
		end++
	}
	e := s.wrong(s.at, "\".\" is no operator")
	if from == s.at {
		return e.WithHint("a path belongs to its reference: `$ref:step.path`; a number begins with a digit: 0.5")
	}
	return e.WithHint("write `$ref:%s`", strings.TrimPrefix(clip(s.text[from:end]), "steps."))
}

// noReference refuses a "$" that begins no reference.
func (s *scanner) noReference() *fault.Error {
	e := s.wrong(s.at, "a \"$\" begins a reference, and this is none: %s", clip(s.text[s.at:]))
	if strings.HasPrefix(s.text[s.at:], "${") {
		return e.WithHint("in an expression references stand without braces: `$ref:step.path`")
	}
	return e.WithHint(hintReference)
}

// minus refuses a "-" at i in the path of a reference.
func (s *scanner) minus(ref string, i int) *fault.Error {
	key := strings.LastIndexByte(ref[:i], '.')
	end := i + strings.IndexAny(ref[i:]+".", ".[")
	rest := ref[i+1:]
	if rest == "" {
		rest = "…"
	}
	return s.wrong(s.at+i, `the "-" in %s may be a minus, or a part of the key`, clip(ref)).
		WithHint("write `%s - %s` with spaces for a difference, or `%s[\"%s\"]%s` for the key",
			ref[:i], rest, ref[:key], ref[key+1:end], ref[end:])
}

// unknown refuses the word at i of the tokens, which is no operator, no constant and no function.
func (s *scanner) unknown(i int) *fault.Error {
	t := s.tokens[i]
	word := s.text[t.at:t.end]
	e := s.wrong(t.at, "%s means nothing in an expression", clip(word))
	known := slices.Sorted(maps.Keys(functions))
	called := t.end < len(s.text) && s.text[t.end] == '('
	if !called {
		known = append(append(known, words...), "true", "false", "null")
	}
	near := text.Nearest(word, known)
	other, ok := meant[strings.ToLower(word)]
	switch {
	case s.isNot(i):
		return e.WithHint("write `!=`: `x != null` for `x is not null`")
	case ok:
		return e.WithHint("write `%s`", other)
	case len(near) > 0 && text.Likeness(word, near[0]) >= text.FewEdits-1:
		return e.WithHint("write `%s`", near[0])
	case called:
		return e.WithHint("the functions are %s", strings.Join(known, ", "))
	}
	return e.WithHint("write `$ref:%s` for a step's result, \"%s\" for a text", clip(word), clip(word))
}

// isNot reports whether the word at i of the tokens is part of "is not", or stands behind "== not", as others write !=.
func (s *scanner) isNot(i int) bool {
	is := func(i int, word string) bool {
		return i >= 0 && i < len(s.tokens) && strings.EqualFold(s.text[s.tokens[i].at:s.tokens[i].end], word)
	}
	return is(i, "is") && is(i+1, "not") || is(i-1, "not") && is(i-2, "==")
}

// filter says what to write for x | length, where the scanner stands at the mark; "" where no name is behind it.
func (s *scanner) filter() string {
	rest := strings.TrimLeft(s.text[s.at+1:], " \t\r\n")
	end := strings.IndexFunc(rest, func(r rune) bool { return !isLetter(r) })
	if end < 0 {
		end = len(rest)
	}
	word := rest[:end]
	if _, known := functions[word]; known {
		return "there are no filters; write `" + word + "(…)` around the value"
	}
	if other := meant[strings.ToLower(word)]; strings.Contains(other, "(…)") {
		return "there are no filters; write `" + other + "`, with the value in the brackets"
	}
	return ""
}
