package graph

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/plan"
)

// drawMermaid names nodes s0, s1, … because ids such as "end" are words of Mermaid's own; the steps of the plan of s1 are
// s1_0, s1_1, …, in a box.
func drawMermaid(p *plan.Plan) string {
	m := &mermaid{}
	m.b.WriteString("flowchart LR\n")
	m.plan(p, "s", "  ")
	m.class("output", "stroke-width:3px", m.outs)
	m.class("optional", "stroke-dasharray:4 3", m.optional)
	m.class("conditional", "stroke-dasharray:4 3", m.conditional)
	return m.b.String()
}

type mermaid struct {
	b                           strings.Builder
	outs, optional, conditional []string // names of nodes
}

// plan draws the steps of a plan, and what lies between them.
func (m *mermaid) plan(p *plan.Plan, name, indent string) {
	out := outputs(p)
	for i := range p.Steps {
		node := fmt.Sprint(name, i)
		m.step(p, i, node, indent, out[i])
		switch s := &p.Steps[i]; {
		case s.Optional:
			m.optional = append(m.optional, node)
		case dashed(s):
			m.conditional = append(m.conditional, node)
		}
		if out[i] {
			m.outs = append(m.outs, node)
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
			fmt.Fprintf(&m.b, "%s%s%d %s %s%d\n", indent, name, dep, arrow, name, i)
		}
	}
}

// step draws one step: as a node, or as a box where it has a plan of its own.
func (m *mermaid) step(p *plan.Plan, i int, node, indent string, isOutput bool) {
	s := &p.Steps[i]
	does := mermaidEscapes.Replace(does(p, i))
	label := fmt.Sprintf("\"%s<br/><small>%s</small>\"", s.ID, does)
	if c := remarks(s); c != "" {
		label = fmt.Sprintf("\"%s<br/><small>%s<br/>%s</small>\"", s.ID, does, mermaidEscapes.Replace(printable(c)))
	}
	switch {
	case s.Does().Plan != nil:
		fmt.Fprintf(&m.b, "%ssubgraph %s[%s]\n", indent, node, label)
		m.plan(s.Does().Plan, node+"_", indent+"  ")
		fmt.Fprintf(&m.b, "%send\n", indent)
	case isOutput:
		fmt.Fprintf(&m.b, "%s%s([%s])\n", indent, node, label)
	default:
		fmt.Fprintf(&m.b, "%s%s[%s]\n", indent, node, label)
	}
}

// class gives nodes a look.
func (m *mermaid) class(name, look string, nodes []string) {
	if len(nodes) > 0 {
		fmt.Fprintf(&m.b, "  classDef %s %s\n  class %s %s\n", name, look, strings.Join(nodes, ","), name)
	}
}
