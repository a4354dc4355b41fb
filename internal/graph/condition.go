package graph

import (
	"strings"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
)

// maxCondition bounds what a drawing shows of a condition, in bytes.
const maxCondition = 80

// however is what an edge to a step says that names the other one by $error or $status.
const however = "however it ends"

// condition returns a step's condition on one line, clipped; "" for a step that is always taken.
func condition(s *plan.Step) string {
	if s.If == nil {
		return ""
	}
	return "if " + text.Clip(strings.Join(strings.Fields(s.If.Text()), " "), maxCondition)
}

// does says what a step does: the tool that it calls, the plan that it has of its own, or the value that it is.
func does(p *plan.Plan, i int) string {
	if inner := p.Steps[i].Does().Plan; inner != nil {
		return "plan of " + plural(len(inner.Steps), "step")
	}
	switch calc := p.Calculation(i); {
	case !p.Steps[i].Value:
		if plan.IsInline(p.Steps[i].Does().Tool) {
			return "agent"
		}
		return p.Steps[i].Does().Tool
	case calc != "":
		return "= " + text.Clip(strings.Join(strings.Fields(printable(calc)), " "), maxCondition)
	}
	return "value"
}

// remarks returns what a drawing says of a step besides its tool, on one line; "" for nothing.
func remarks(s *plan.Step) string {
	var all []string
	for _, r := range [...]string{condition(s), asks(s), repeats(s)} {
		if r != "" {
			all = append(all, r)
		}
	}
	return strings.Join(all, ", ")
}

// repeats says how a loop goes on, on one line; "" for a step that is none.
func repeats(s *plan.Step) string {
	if s.Repeat == nil {
		return ""
	}
	return text.Clip(strings.Join(strings.Fields(s.Repeat.Text()), " "), maxCondition)
}

// asks says whom a step waits for; "" for one that waits for nobody.
func asks(s *plan.Step) string {
	switch {
	case s.Does().Ask:
		return "asks a person"
	case s.Approval != nil:
		return "after an approval"
	}
	return ""
}

// dashed reports whether a step may come to nothing without harm: it is optional, or has a condition.
func dashed(s *plan.Step) bool { return s.Optional || s.If != nil }

// printable leaves out what moves a terminal's cursor, and what a renderer takes for a line break.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return -1
		}
		return r
	}, s)
}

var (
	dotEscapes     = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	mermaidEscapes = strings.NewReplacer(`#`, "#35;", `"`, "#quot;", `<`, "#lt;", `>`, "#gt;", `&`, "#amp;", "`", "#96;")
)
