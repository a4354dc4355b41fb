package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// suspects are the bytes at which another language's reference within longer text may begin: those of the marks and
// prefixes, and the colon of "ref:".
var suspects = func() (t [256]bool) {
	for _, c := range "{[<%$#@:" {
		t[c] = true
	}
	return t
}()

// within warns of what looks like a reference within longer text and is none: another language's, or an expression
// behind a right one.
func (w *walker) within(text string, pieces []piece) {
	if computes(pieces) > 0 || (calcReader{w}).calculates(text, pieces) {
		w.warn("", fmt.Sprintf("%s is text with a reference in it: nothing is computed", clip(text)),
			calcReader{w}.hint(text))
		return
	}
	for i := 0; i < len(text); i++ {
		if !suspects[text[i]] {
			continue
		}
		if from, end, ref := w.p.refs.foreignAt(text, i, w.known); ref != "" {
			w.warn("", fmt.Sprintf("%s within the text stays as it is: it is no reference", clip(text[from:end])),
				fmt.Sprintf("write %s if the value is meant", w.inText(ref)))
			return
		}
	}
}

// foreignAt finds another language's reference within text: from its mark or prefix at i on, or, where a colon is
// there, around it. ref is its id and path, empty where there is none, or nothing but digits.
func (p *refParser) foreignAt(s string, i int, known func(id string) bool) (from, end int, ref string) {
	for _, m := range marks {
		if strings.HasPrefix(s[i:], m.open) {
			if stop, ref := p.refAt(s, skipSpace(s, i+len(m.open)), known); ref != "" {
				if stop = skipSpace(s, stop); strings.HasPrefix(s[stop:], m.close) {
					return i, stop + len(m.close), ref
				}
			}
		}
	}
	from, start := i, i+1
	switch {
	case s[i] == ':':
		if i < 3 || !strings.EqualFold(s[i-3:i], "ref") {
			return 0, 0, ""
		}
		from = i - 3
		if from > 0 && s[from-1] == '$' {
			from--
		}
		if s[from:i+1] == refPrefix {
			return 0, 0, ""
		}
	case strings.HasPrefix(s[i:], "$."):
		start++
	case s[i] == '$' && foreignWord(s[i:]) == 5 && s[i+4] != ':':
		start += 4
	case strings.IndexByte("$#@", s[i]) < 0:
		return 0, 0, ""
	}
	if from > 0 && (subjects.IsPlain(s[from-1]) || s[from-1] == '$' || s[from-1] == '{') {
		return 0, 0, ""
	}
	if end, ref = p.refAt(s, start, known); ref == "" || s[i] != ':' && isID(ref) {
		return 0, 0, "" // @anna and #1 are much else
	}
	return from, end, ref
}

func isID(ref string) bool { return !strings.ContainsAny(ref, ".[") }

// refAt reads the longest id and path at s[i:], with or without "steps." before them.
func (p *refParser) refAt(s string, i int, known func(id string) bool) (end int, ref string) {
	if rest, ok := strings.CutPrefix(s[i:], stepsPrefix); ok {
		if end, ref = p.refAt(rest, 0, known); ref != "" {
			return end + len(s) - len(rest), ref
		}
	}
	if i >= len(s) || !subjects.IsPlain(s[i]) {
		return 0, ""
	}
	r, end, why := p.parse(s, i)
	p.forget(r)
	if why != "" || !known(r.id) || allDigits(strings.NewReplacer(".", "", "[", "", "]", "").Replace(r.text)) {
		return 0, ""
	}
	return end, r.text
}

// calculates reports whether a text with references is written like a calculation: a call of a function, or brackets
// around what computes.
func (w calcReader) calculates(text string, pieces []piece) bool {
	name, _, called := strings.Cut(text, "(")
	refers := slices.ContainsFunc(pieces, func(x piece) bool { return len(x.refs) > 0 })
	if !called || !refers || strings.Trim(trimSpace(name), "abcdefghijklmnopqrstuvwxyz") != "" {
		return false
	}
	if trimSpace(name) == "" && len(pieces) == 3 && trimSpace(pieces[0].text) == "(" && trimSpace(pieces[2].text) == ")" {
		return false // a value in brackets
	}
	_, err := expression.Compile(text, w.p.refs.reads)
	return err == nil
}

// computes reports, as a number above 0, where an operator or a filter follows a reference that the text begins with.
func computes(pieces []piece) int {
	if len(pieces) < 2 || len(pieces[0].refs) == 0 || len(pieces[1].refs) > 0 {
		return 0
	}
	text := pieces[1].text
	i := skipSpace(text, 0)
	for _, op := range [...]string{"==", "!=", "<=", ">=", "&&", "??", "+", "-", "*", "/", "%", "^", "|", "<", ">"} {
		if i == 0 || !strings.HasPrefix(text[i:], op) {
			continue
		}
		rest := text[i+len(op):]
		behind := trimSpace(rest)
		switch {
		case behind == "" && len(pieces) > 2 && len(pieces[2].refs) > 0:
			return i // another reference
		case behind == "" || behind == rest && op != "|":
			return 0
		case op == "-" && !jsontape.IsDigit(behind[0]): // a dash
			return 0
		case subjects.IsPlain(behind[0]) || strings.IndexByte(`"'(`, behind[0]) >= 0:
			return i
		}
		return 0
	}
	return 0
}
