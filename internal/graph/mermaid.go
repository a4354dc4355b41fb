package graph

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/plan"
)

// drawMermaid names nodes s0, s1, … because ids such as "end" are words of Mermaid's own.
func drawMermaid(p *plan.Plan) string {
	var b strings.Builder
	out := outputs(p)
	b.WriteString("flowchart LR\n")
	for i := range p.Steps {
		s := &p.Steps[i]
		does := mermaidEscapes.Replace(does(p, i))
		label := fmt.Sprintf("\"%s<br/><small>%s</small>\"", s.ID, does)
		if c := remarks(s); c != "" {
			label = fmt.Sprintf("\"%s<br/><small>%s<br/>%s</small>\"", s.ID, does, mermaidEscapes.Replace(printable(c)))
		}
		if out[i] {
			fmt.Fprintf(&b, "  s%d([%s])\n", i, label)
		} else {
			fmt.Fprintf(&b, "  s%d[%s]\n", i, label)
		}
	}
	for i := range p.Steps {
		for _, dep := range p.Steps[i].Deps {
			arrow := "-->"
			switch {
			case p.Steps[i].Regards(dep):
				arrow = "-.->|" + however + "|"
			case p.Steps[dep].Optional:
				arrow = "-.->"
			}
			fmt.Fprintf(&b, "  s%d %s s%d\n", dep, arrow, i)
		}
	}
	b.WriteString(mermaidClasses(p, out))
	return b.String()
}

func mermaidClasses(p *plan.Plan, out map[int]bool) string {
	var outs, optional, conditional []string
	for i := range p.Steps {
		name := fmt.Sprintf("s%d", i)
		if out[i] {
			outs = append(outs, name)
		}
		if p.Steps[i].Optional {
			optional = append(optional, name)
		} else if dashed(&p.Steps[i]) {
			conditional = append(conditional, name)
		}
	}
	text := ""
	if len(outs) > 0 {
		text += "  classDef output stroke-width:3px\n  class " + strings.Join(outs, ",") + " output\n"
	}
	if len(optional) > 0 {
		text += "  classDef optional stroke-dasharray:4 3\n  class " + strings.Join(optional, ",") + " optional\n"
	}
	if len(conditional) > 0 {
		text += "  classDef conditional stroke-dasharray:4 3\n  class " + strings.Join(conditional, ",") + " conditional\n"
	}
	return text
}
