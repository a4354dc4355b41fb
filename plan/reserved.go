package plan

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// What has a meaning one day. Until then a plan that uses it is refused: to ignore a field, or to take a reference for
// text, would run something else than what was meant. Whoever gives one of them its meaning takes its entry, or what it
// says is written instead, out of these tables.

// reserved are the fields of plans and steps that have a meaning one day, each with a hint.
var reserved = map[string]string{
	"when":     `remove it, or write "if" in the step that it is for, as in "if": "$ref:<id>.total > 100"`,
	"version":  "remove it: there is one version",
	"priority": "remove it",
	"batch":    "a tool's contract says whether it takes batches; for the items of a list use for_each",
	"until":    `write it into the step that is repeated: "repeat": {"until": "$last.ready"}`,
	"ask":      `ask by a step {"tool": "ask", "arguments": {"question": "…"}}, or before a step by its "approval": {"ask": "…"}`,
	"template": `a step calls a template as any tool: "tool": "<name>"; without steps around it write {"template": "<name>", "input": {…}}`,
}

// lacks reports whether the plan's language has no field of this name yet, so that nothing else stands for it either.
func (p *refParser) lacks(field string) bool {
	return p.later(field) || p.language1 && (field == "if" || field == "approval")
}

// later reports whether a field was one that nobody knew, when a plan was accepted that is read as in language 1.
func (p *refParser) later(field string) bool { return p.language1 && field == "value" }

// opening is what begins a reference, behind a "$".
type opening struct {
	text     string
	language int    // that it came with
	named    bool   // only where an id follows: people write "$error: …" too
	of       aspect // what it is after
	instead  string // what to write as long as it is reserved; empty for one that has a meaning
}

const (
	insteadOfInput = "a plan has no input, unless it is that of a step: write the value itself"
	insteadOfTurn  = `only the arguments and the "until" of a step with "repeat" know it: "$ref:<id>" is the result of a step`
)

var openings = [...]opening{
	{text: "ref:", language: 1},
	{text: "{ref:", language: 1},
	{text: "error:", language: 2, named: true, of: itsError},
	{text: "{error:", language: 2, named: true, of: itsError},
	{text: "status:", language: 2, named: true, of: itsStatus},
	{text: "{status:", language: 2, named: true, of: itsStatus},
	{text: "{input.", language: 2, of: itsInput, instead: insteadOfInput},
}

// openingAt returns what a reference begins with in s, which follows a "$"; nil where none does.
func openingAt(s string) *opening {
	if s == "" || strings.IndexByte("re{s", s[0]) < 0 {
		return nil
	}
	for i := range openings {
		o := &openings[i]
		if strings.HasPrefix(s, o.text) && (!o.named || len(s) > len(o.text) && subjects.IsPlain(s[len(o.text)])) {
			return o
		}
	}
	return nil
}

// inputInText are what a reference begins with, besides, in the text of a plan that has an input. Elsewhere it is text.
var inputInText = [...]opening{{text: "{input[", language: 2, of: itsInput}, {text: "{input}", language: 2, of: itsInput}}

// openingAt returns what a reference begins with in s, which follows a "$", in the plan in hand.
func (p *refParser) openingAt(s string) *opening {
	for i := 0; p.input && i < len(inputInText); i++ {
		if strings.HasPrefix(s, inputInText[i].text) {
			return &inputInText[i]
		}
	}
	return openingAt(s)
}

// prefixOf reads the beginning of a reference that may be all of a string: n is the number of bytes up to the id; 0
// where there is none, or none that has a meaning.
func (p *refParser) prefixOf(s string) (of aspect, n int) {
	if len(s) == 0 || s[0] != '$' {
		return 0, 0
	}
	if w := p.wordAt(s); w != nil {
		return w.of, 1
	}
	o := openingAt(s[1:])
	if o == nil || o.braced() || o.instead != "" || p.language1 && o.language > 1 {
		return 0, 0
	}
	return o.of, 1 + len(o.text)
}

// without returns what to write instead of such a reference, where it has no meaning.
func (p *refParser) without(o *opening) string {
	if o.of == itsInput && p.input {
		return ""
	}
	return o.instead
}

// wordAt returns the word that s begins with, where it has a meaning; nil else.
func (p *refParser) wordAt(s string) *word {
	for i := range words {
		w := &words[i]
		if rest, is := strings.CutPrefix(s, "$"+w.text); is && p.means(w) && (rest == "" || !subjects.IsPlain(rest[0])) {
			return w
		}
	}
	return nil
}

// means reports whether a word has a meaning where strings are read now.
func (p *refParser) means(w *word) bool {
	if w.of == itsInput {
		return p.input
	}
	return p.turn
}

// braced reports whether the reference ends with a brace.
func (o *opening) braced() bool { return o.text[0] == '{' }

// word is a reference without a step, which counts only where it is all of a string.
type word struct {
	text    string
	path    bool   // may have one
	of      aspect // what it is after
	instead string // what to write where it has no meaning
}

var words = [...]word{
	{"input", true, itsInput, insteadOfInput},
	{"last", true, itsLast, insteadOfTurn},
	{"index", false, itsIndex, insteadOfTurn},
}

// wordOf returns the word that is all of a string behind its one "$": alone, with a path, or the first of alternatives.
// Where something else follows that can't be a path, it is meant for one all the same, unless white space or another
// "$" says that this is text. nil for any other string.
func (p *refParser) wordOf(s string) *word {
	for i := range words {
		w := &words[i]
		rest, is := strings.CutPrefix(s, "$"+w.text)
		if !is || rest != "" && subjects.IsPlain(rest[0]) {
			continue
		}
		end := len(s) - len(rest)
		if w.path {
			var r ref
			r, end, _ = p.parse(s, 1)
			p.forget(r)
		}
		if rest == "" || strings.HasPrefix(s[skipSpace(s, end):], "||") {
			return w
		}
		if w.path && (rest[0] == '.' || rest[0] == '[') && !outsideQuotes(rest, func(c byte) bool { return c == '$' || jsontape.IsSpace(c) }) {
			return w
		}
		return nil
	}
	return nil
}

// reservedWhole reports whether a string is a reference as a whole, of a kind that is reserved.
func (p *refParser) reservedWhole(s string) (piece, bool) {
	if p.language1 || len(s) < 2 || s[0] != '$' {
		return piece{}, false
	}
	if w := p.wordOf(s); w != nil && !p.means(w) {
		return reservedRef(s, w.instead), true
	}
	o := openingAt(s[1:])
	if o == nil || o.instead == "" || o.braced() {
		return piece{}, false
	}
	r, end, _ := p.parse(s, 1+len(o.text))
	p.forget(r)
	if spaceOutsideQuotes(s) && !strings.HasPrefix(s[skipSpace(s, end):], "||") {
		return piece{}, false
	}
	return reservedRef(s, o.instead), true
}

// reservedRef refuses a reference that has no meaning where it stands, behind no other "$".
func reservedRef(s, instead string) piece {
	return piece{broken: &mistake{
		why:  clip(s) + " has no meaning here",
		hint: fmt.Sprintf("%s; for the plain text write %q", instead, "$"+clip(s)),
	}}
}

// ofLanguage2 reports whether a string holds a reference of language 2, or an escape of one.
func (p *refParser) ofLanguage2(s string) bool {
	if n := dollars(s); n > 0 && p.wordOf(s[n-1:]) != nil {
		return true
	}
	for i := strings.IndexByte(s, '$'); i >= 0 && i < len(s); i++ {
		if s[i] != '$' {
			continue
		}
		if o := p.openingAt(s[i+1:]); o != nil && o.language > 1 {
			return true
		}
	}
	return false
}
