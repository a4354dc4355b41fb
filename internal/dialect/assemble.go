package dialect

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// fewParts are put together in one expression, since those are bounded.
const fewParts = 20

// assembly is an expression that grows.
type assembly struct {
	*compiler
	path  path
	text  string   // empty for null
	needs []string // what it takes of others, whose failure skips it
	parts int
}

// start begins with the first of several sources that has something.
func (a *assembly) start(s sources) {
	if !s.scalar() || len(s.origins) > fewParts {
		s = a.chosen(s, a.path)
	}
	if len(s.origins) > 0 || s.constant != nil {
		a.grow(s)
		a.text = a.chain(s, "null")
	}
}

// fold takes in what one writer wrote.
func (a *assembly) fold(method string, s sources) {
	a.grow(s)
	x := a.chain(s, "null")
	if method == "push" {
		x = "(" + x + " == null ? null : [" + x + "])"
	}
	switch {
	case method == methodSet && a.text != "":
		a.text = "(" + x + " ?? " + a.text + ")"
	case method == methodSet:
		a.text = x
	case method == "merge":
		a.text = "merge(" + a.orNull() + ", " + x + ")"
	default:
		a.text = "concat(" + a.orNull() + ", " + x + ")"
	}
}

// orNull is the expression so far.
func (a *assembly) orNull() string {
	if a.text == "" {
		return "null"
	}
	return a.text
}

// put sets a member.
func (a *assembly) put(key string, s sources) {
	if !s.scalar() {
		s = a.chosen(s, append(slices.Clip(a.path), elem{key: key}))
	}
	a.grow(s)
	x := ", " + quoted(a.EscapeText(key)) + ", " + a.chain(s, "null") + ")"
	if rest, more := strings.CutPrefix(a.text, "put("); more {
		a.text = "put(" + rest[:len(rest)-1] + x
		return
	}
	a.text = "put(" + a.orNull() + x
}

// grow notes what is needed for one more part. Where there are many, those so far become a step of their own.
func (a *assembly) grow(s sources) {
	if a.parts += 1 + len(s.origins); a.parts > fewParts && a.text != "" {
		so := sources{origins: []origin{{step: a.step()}}}
		a.text, a.needs, a.parts = a.chain(so, "null"), nil, 1
		a.need(so)
	}
	a.need(s)
}

// need lets the failure of all that something could come from skip the step.
func (a *assembly) need(s sources) { a.needs = append(a.needs, a.missing(s)...) }

// step makes the step, and returns its id.
func (a *assembly) step() string {
	return a.cell("calculated "+a.text, a.nameOf(a.path), a.path, func(string) []byte {
		body := anyway(a.needs)
		body = jsontape.AppendQuoted(append(body, `"value":{"$calc":`...), a.text)
		return append(body, '}')
	})
}

// anyway is a condition that holds whatever it reads comes to: only a failure of what it needs skips its step.
func anyway(needs []string) []byte {
	if len(needs) == 0 {
		return nil
	}
	return append(jsontape.AppendQuoted([]byte(`"if":`), "true or "+strings.Join(needs, " or ")), ',')
}
