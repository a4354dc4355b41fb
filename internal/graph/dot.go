package graph

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/plan"
)

func drawDOT(p *plan.Plan) string {
	var b strings.Builder
	out := outputs(p)
	b.WriteString("digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"Helvetica\"];\n")
	for i := range p.Steps {
		s := &p.Steps[i]
		does := dotEscapes.Replace(does(p, i))
		attrs := fmt.Sprintf("label=\"%s\\n%s\"", s.ID, does)
		if c := remarks(s); c != "" {
			attrs = fmt.Sprintf("label=\"%s\\n%s\\n%s\"", s.ID, does, dotEscapes.Replace(printable(c)))
		}
		if out[i] {
			attrs += ", penwidth=2"
		}
		if dashed(s) {
			attrs += ", style=\"rounded,dashed\""
		}
		fmt.Fprintf(&b, "  \"%s\" [%s];\n", s.ID, attrs)
	}
	for _, wave := range p.Waves() {
		if len(wave) < 2 {
			continue
		}
		b.WriteString("  { rank=same;")
		for _, i := range wave {
			fmt.Fprintf(&b, " \"%s\";", p.Steps[i].ID)
		}
		b.WriteString(" }\n")
	}
	for i := range p.Steps {
		for _, dep := range p.Steps[i].Deps {
			style := ""
			switch {
			case p.Steps[i].Regards(dep):
				style = " [style=dotted, label=\"" + however + "\"]"
			case p.Steps[dep].Optional:
				style = " [style=dashed]"
			}
			fmt.Fprintf(&b, "  \"%s\" -> \"%s\"%s;\n", p.Steps[dep].ID, p.Steps[i].ID, style)
		}
	}
	b.WriteString("}\n")
	return b.String()
}
