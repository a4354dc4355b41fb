package dialect

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// source is what a reference goes into.
type source uint8

const (
	ofState source = iota
	ofInput
)

func (s source) String() string { return [...]string{"†state", "†input"}[s] }

// ref is a reference to the state or to the input.
type ref struct {
	of   source
	path path
}

func (r ref) String() string { return r.of.String() + r.path.String() }

const dagger = "†"

// sigil returns the length of the mark that a reference begins with, "†" or "$"; 0 where s begins with neither.
func sigil(s string) int {
	switch {
	case strings.HasPrefix(s, dagger):
		return len(dagger)
	case strings.HasPrefix(s, "$"):
		return 1
	}
	return 0
}

// rootAt reads "state" or "input" at s[i:] as a whole word.
func rootAt(s string, i int) (of source, end int, ok bool) {
	for of, word := range [...]string{ofState: "state", ofInput: "input"} {
		end := i + len(word)
		if strings.HasPrefix(s[i:], word) && (end == len(s) || !subjects.IsPlain(s[end])) {
			return source(of), end, true
		}
	}
	return 0, i, false
}

// refAt reads a reference with its mark at s[i:]; ok is false where none begins there.
func refAt(s string, i int) (r ref, end int, why string, ok bool) {
	n := sigil(s[i:])
	if n == 0 {
		return r, i, "", false
	}
	if r.of, end, ok = rootAt(s, i+n); !ok {
		return r, i, "", false
	}
	r.path, end, why = parsePath(s, end)
	return r, end, why, true
}

// operand is one side of || or &&: a reference or, at the end of alternatives, a JSON scalar.
type operand struct {
	ref     ref
	literal string // the scalar; empty for a reference
}

// piece is a part of a string: text, or a reference with all that stands beside it.
type piece struct {
	text     string
	operands []operand // nil for text
	all      bool      // joined by &&: all are waited for, and the last counts
}

// value is what a string stands for.
type value struct {
	whole  bool // the one piece is all of it, and its value takes the place of the string
	pieces []piece
	made   bool // the text is not as it was written: dollars or daggers that escape were taken away
}

// refers reports whether there is a reference in it.
func (v *value) refers() bool {
	return slices.ContainsFunc(v.pieces, func(p piece) bool { return p.operands != nil })
}

// foreign reports whether its text has references of plans with steps.
func (v *value) foreign() bool {
	return slices.ContainsFunc(v.pieces, func(p piece) bool { return p.operands == nil && foreignRef.MatchString(p.text) })
}

var foreignRef = regexp.MustCompile(`\$\{?(ref:|(error|status):[A-Za-z0-9_-])`)

// inMarks finds a whole string that is meant for a reference: {{state.a}}, <†input.b>, † state.a.
var inMarks = regexp.MustCompile(`^\s*(?:\{\{|\$\{\{|\[\[|<|%|\{|†\s)\s*[†$]?\s*(state|input)([.\[][^\s{}<>%]*)\s*(?:\}\}|\]\]|>|%|\}|)\s*$`)

// mistake is why a string can't be read.
type mistake struct{ why, hint string }

// mayRefer reports whether a string can hold anything of this dialect.
func mayRefer(s string) bool { return strings.Contains(s, dagger) || strings.Contains(s, "$") }

// parseText takes a string apart.
func parseText(s string) (value, *mistake) {
	if _, _, _, ok := refAt(s, 0); ok {
		p, err := parseWhole(s)
		return value{whole: true, pieces: []piece{p}}, err
	}
	if m := strangeWord(s); m != nil {
		return value{}, m
	}
	return parseTemplate(s)
}

// strangeWord finds a string that looks like a reference to something else than the state and the input.
func strangeWord(s string) *mistake {
	rest, ok := strings.CutPrefix(s, dagger)
	if !ok || strings.HasPrefix(rest, dagger) {
		return nil
	}
	word := rest[:plainEnd(rest, 0)]
	if _, end, why := parsePath(rest, len(word)); word == "" || end != len(rest) || why != "" {
		return nil
	}
	return &mistake{why: "there is nothing named " + dagger + clip(word), hint: "references begin with †state or †input; write " + verbatim(s) + " for the text"}
}

// parseWhole reads a string that begins with a reference.
func parseWhole(s string) (piece, *mistake) {
	const within = "within text a reference is written ${†state.path}"
	var p piece
	op := ""
	for i := 0; ; {
		o, end, m := parseOperand(s, i, op == "||")
		if m != nil {
			return p, m
		}
		p.operands = append(p.operands, o)
		if i = skipSpace(s, end); i == len(s) {
			p.all = op == "&&"
			return p, nil
		}
		next := s[i:min(i+2, len(s))]
		switch {
		case o.literal != "" || next != "||" && next != "&&":
			return p, &mistake{why: "the reference doesn't end before " + clip(s[end:]), hint: within + "; alternatives are parted by ||"}
		case op != "" && op != next:
			return p, &mistake{why: "|| and && stand beside each other", hint: "use one of them here, and decide the other by _if"}
		}
		op, i = next, skipSpace(s, i+2)
	}
}

// parseOperand reads a reference, or a scalar where one may stand.
func parseOperand(s string, i int, scalar bool) (o operand, end int, m *mistake) {
	r, end, why, ok := refAt(s, i)
	switch {
	case ok && why != "":
		return o, i, &mistake{why: why, hint: `write †state.key, †state["any key"], †state.list[0]`}
	case ok:
		return operand{ref: r}, end, nil
	case scalar && isScalar(s[i:]):
		return operand{literal: s[i:]}, len(s), nil
	}
	return o, i, &mistake{
		why:  "neither a reference nor a JSON scalar: " + clip(s[i:]),
		hint: `alternatives are references between ||, and at last perhaps one JSON scalar: "†state.a || †state.b || \"none\""`,
	}
}

// isScalar reports whether s is one JSON scalar without white space around it.
func isScalar(s string) bool {
	return s != "" && s[0] != '{' && s[0] != '[' && strings.TrimSpace(s) == s && json.Valid([]byte(s))
}

// parseTemplate finds the references within text: ${†state.x}, or ${state.x}. A mark that would begin one is text where
// it is doubled.
func parseTemplate(s string) (value, *mistake) {
	var v value
	literal := 0
	flush := func(text string) {
		if n := len(v.pieces); n > 0 && v.pieces[n-1].operands == nil {
			v.pieces[n-1].text += text
		} else if text != "" {
			v.pieces = append(v.pieces, piece{text: text})
		}
	}
	for i := 0; i < len(s); {
		size := sigil(s[i:])
		if size == 0 {
			i++
			continue
		}
		n := run(s[i:], s[i:i+size])
		at := i + n*size // behind the marks
		braced := size == 1 && at < len(s) && s[at] == '{' && opensRef(s, at+1)
		if _, end, ok := rootAt(s, at); !braced && !(ok && (size > 1 || pathBegins(s, end) || i == 0 && end == len(s))) {
			i = at
			continue
		}
		flush(s[literal:i])
		if !braced {
			if n == 1 {
				return v, &mistake{why: "a reference within text has to stand in braces: " + clip(s[i:]), hint: "write ${†" + strings.TrimPrefix(trimRef(s, at), dagger) + "}, or double the mark where the text is meant"}
			}
			flush(s[i : at-size]) // one of the marks is the escape
			v.made = true
			i, literal = at, at
			continue
		}
		flush(s[i : i+n/2*size]) // each two stand for one
		v.made = v.made || n > 1
		if n%2 == 0 { // what stands in the brace is text too
			i, literal = at+1+sigil(s[at+1:]), at
			continue
		}
		p, end, m := parseBraced(s, at)
		if m != nil {
			return v, m
		}
		v.pieces = append(v.pieces, p)
		i, literal = end, end
	}
	flush(s[literal:])
	return v, nil
}

// run returns how often s begins with a mark, one behind the other.
func run(s, mark string) (n int) {
	for strings.HasPrefix(s, mark) {
		s, n = s[len(mark):], n+1
	}
	return n
}

// opensRef reports whether what stands behind a brace is a reference, with a mark or without.
func opensRef(s string, i int) bool {
	_, _, ok := rootAt(s, i+sigil(s[i:]))
	return ok
}

func pathBegins(s string, i int) bool {
	return i < len(s) && (s[i] == '.' && plainEnd(s, i+1) > i+1 || s[i] == '[')
}

// trimRef returns the text of the reference whose root is at s[at:].
func trimRef(s string, at int) string {
	_, end, _ := rootAt(s, at)
	_, end, _ = parsePath(s, end)
	return s[at:end]
}

// parseBraced reads {†state.path} of a template.
func parseBraced(s string, i int) (piece, int, *mistake) {
	at := i + 1 + sigil(s[i+1:])
	of, end, _ := rootAt(s, at)
	p, end, why := parsePath(s, end)
	switch {
	case why != "":
	case strings.HasPrefix(s[skipSpace(s, end):], "||"), strings.HasPrefix(s[skipSpace(s, end):], "&&"):
		why = "there is no || and no && within text"
	case end == len(s) || s[end] != '}':
		why = "the brace is not closed behind the reference"
	default:
		return piece{operands: []operand{{ref: ref{of: of, path: p}}}}, end + 1, nil
	}
	return piece{}, i, &mistake{why: why, hint: "write ${" + (ref{of: of, path: p}).String() + "}"}
}

func skipSpace(s string, i int) int {
	for i < len(s) && jsontape.IsSpace(s[i]) {
		i++
	}
	return i
}
