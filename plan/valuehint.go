package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// What to write for a wrong value of a known field.

// boolHint says how true or false is written that stands there as something else.
func (p *parser) boolHint(n int32) string {
	word := strings.ToLower(strings.Trim(p.shown(n), `" `))
	switch word {
	case "true", "yes", "1", "on":
		return "write true, without quotes"
	case "false", "no", "0", "off":
		return "write false, without quotes"
	}
	return "write true or false"
}

// numberHint says which number to write.
func (p *parser) numberHint(n int32, least, most float64, whole bool) string {
	text := strings.Trim(p.shown(n), `" `)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		return ""
	}
	v = min(max(v, least), most)
	if whole {
		v = math.Round(v)
	}
	number := strconv.FormatFloat(v, 'f', -1, 64)
	if p.tape[n].Kind == jsontape.String {
		return fmt.Sprintf("write %s, without quotes", number)
	}
	return "write " + number
}

// wordHint says which word of an option to write.
func (p *parser) wordHint(n int32, words []string) string {
	if p.tape[n].Kind == jsontape.String {
		if near := p.near.nearest(strings.TrimSpace(p.str(n)), words); len(near) == 1 {
			return fmt.Sprintf("write %q", near[0])
		}
	}
	return fmt.Sprintf("write %q or leave it out: that is the default", words[0])
}

// stepsHint says how steps are written that are no array.
func (p *parser) stepsHint(n int32) string {
	const form = `write "steps": [{"id": "a", "tool": "…", "arguments": {}}]`
	switch v := p.tape[n]; {
	case v.Kind == jsontape.String && strings.HasPrefix(strings.TrimSpace(p.str(n)), "["):
		return `write the array itself and not a string that holds it: "steps": [{"id": …`
	case v.Kind == jsontape.Object && p.fieldOf(n, "tool") != 0:
		return `put the step into an array: "steps": [{…}]`
	case v.Kind == jsontape.Object && v.Next > n+1:
		return fmt.Sprintf(`write an array, with each key as the step's id: "steps": [{"id": %s, …}, …]`, quoteJSON(clip(p.keyName(n+1))))
	}
	return form
}

// likeSteps are what models call the list of steps.
var likeSteps = map[string]bool{
	"tasks": true, "calls": true, "actions": true, "nodes": true, "tool_calls": true, "toolCalls": true, "functions": true, "workflow": true,
	"plan": true, "tools": true, "operations": true, "stages": true, "jobs": true, "execution_plan": true, "sequence": true,
}

// seemsSteps returns the field of the plan that seems to hold its steps, under another name, and takes its warning into
// the problem.
func (p *parser) seemsSteps() (string, bool) {
	for _, s := range p.strangers[p.unread:] {
		if name := p.keyName(s.key); likeSteps[name] && p.tape[s.key+1].Kind == jsontape.Array {
			p.col.blame(s.warning)
			return name, true
		}
	}
	return "", false
}

// strangersOf returns the fields of a step that nobody knows.
func (p *parser) strangersOf(i int) []stranger {
	own := p.node(i).strangers
	return p.strangers[own[0]:own[1]]
}

// idFrom says what id to give a step that has none.
func (p *parser) idFrom(i int) string {
	for _, s := range p.strangersOf(i) {
		switch name := p.keyName(s.key); strings.ToLower(name) {
		case "name", "step", "key", "label", "ref", "alias", "node", "as", "uid", "identifier", "task":
			if v := p.tape[s.key+1]; v.Kind == jsontape.String && subjects.ValidStepID(p.str(s.key+1)) {
				p.col.blame(s.warning)
				return fmt.Sprintf("write %s; %q is not known", p.written("id", s.key+1), name)
			} else if v.Kind == jsontape.Number {
				p.col.blame(s.warning)
				return fmt.Sprintf(`write "id": "%s"; %q is not known`, p.shown(s.key+1), name)
			}
		}
	}
	id := "step_" + strconv.Itoa(i+1)
	if _, taken := p.plan.ids.find(id); taken {
		return "give it an id: 1 to 64 of A-Z a-z 0-9 _ -"
	}
	return fmt.Sprintf(`give it an id, such as "id": %q: 1 to 64 of A-Z a-z 0-9 _ -`, id)
}

// toolFrom says which tool to write in a step that names none.
func (p *parser) toolFrom(i int) string {
	for _, s := range p.strangersOf(i) {
		if p.tape[s.key+1].Kind != jsontape.String || p.catalog == nil {
			continue
		}
		if _, known := p.lookup(p.str(s.key + 1)); known {
			p.col.blame(s.warning)
			return fmt.Sprintf("write %s; %q is not known", p.written("tool", s.key+1), clip(p.keyName(s.key)))
		}
	}
	const form = `say which tool it calls: "tool": "…"`
	switch s := p.node(i); {
	case p.fieldOf(s.object, "value") != 0: // null, which is as good as absent
		return form + `; a value of null is written "value": {"$calc": "null"}`
	case s.approval != 0:
		return `put the approval into the step that it is for; to ask by itself write "tool": "ask", "arguments": {"question": "…"}, without it`
	}
	return form
}

// suggester finds the name that was probably meant. Its whole work is bounded, so that a plan of thousands of wrong
// names costs no more than one of a few; when the bound is reached it has nothing more to suggest.
type suggester struct{ left int }

// maxSuggestWork is the number of names that one report may be compared with.
const maxSuggestWork = 200_000

// nearest returns the names most like s (text.Nearest); none once the bound is reached.
func (g *suggester) nearest(s string, names []string) []string {
	if !g.afford(len(names)) {
		return nil
	}
	return text.Nearest(s, names)
}

// afford takes some of the work that is left; it reports false once the bound is reached.
func (g *suggester) afford(work int) bool {
	g.left -= work
	return g.left >= 0
}

// didYouMean asks for one of some names, each as it would be written.
func didYouMean(names []string, write func(string) string) string {
	var b strings.Builder
	b.WriteString("did you mean ")
	for i, n := range names {
		switch {
		case i == maxListed:
			b.WriteString(", …?")
			return b.String()
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(write(n))
	}
	return b.String() + "?"
}

// maxListed is the most names that a hint lists.
const maxListed = 12

// listSome writes the first few names, for a hint.
func listSome(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:maxListed], ", ") + ", …"
}
