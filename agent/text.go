package agent

import (
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Text is what a planner is told, with "${input.x}" where a part of the agent's input is meant, and in a facade
// "${args.x}" where one of its arguments is. "$${" stands for "${".
type Text struct{ written string }

// Told returns what a planner is told by an agent that was called with an input: the agent's instructions, a sentence
// with its description where it has none, and its extra requirement, which may be empty.
func (d *Definition) Told(input []byte) (instructions, extra string) {
	of := func(t Text) string {
		filled, _ := fill(t.written, textWords, func(r reference) ([]byte, bool) { return within(input, r.path) })
		return filled
	}
	if instructions = of(d.Instructions); instructions == "" {
		instructions = DefaultInstructions + d.Description
	}
	return instructions, of(d.ExtraRequirement)
}

// fill puts values into a text; look is nil where only its references are to be judged. What begins as a reference to
// no known word is text.
func fill(s string, words []string, look sight) (filled, why string) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), ""
		}
		if i > 0 && s[i-1] == '$' { // escaped
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		r, end, wrong := readReference(s, i+2, words)
		if !known(r.word, words) {
			b.WriteString(s[:i+2])
			s = s[i+2:]
			continue
		}
		if wrong == "" && (end == len(s) || s[end] != '}') {
			wrong = "it is not closed by }"
		}
		if wrong != "" {
			return "", clip(s[i:]) + " is no reference: " + wrong
		}
		b.WriteString(s[:i])
		if look != nil {
			b.WriteString(readable(look(r)))
		}
		s = s[end+1:]
	}
}

func known(word string, words []string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// readable writes a value for a text: a string as it is, nothing where there is none.
func readable(raw []byte, ok bool) string {
	switch {
	case !ok || kindOf(raw) == jsontape.Null:
		return ""
	case kindOf(raw) == jsontape.String:
		return jsontape.Unquoted(raw)
	}
	return string(raw)
}
