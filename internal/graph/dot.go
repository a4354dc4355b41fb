package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/plan"
)

func drawDOT(p *plan.Plan) string {
	var d dot
	d.b.WriteString("digraph plan {\n  rankdir=LR;\n")
	if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Does().Plan != nil }) {
		d.b.WriteString("  compound=true;\n")
	}
	d.b.WriteString("  node [shape=box, style=rounded, fontname=\"Helvetica\"];\n")
	d.plan(p, "", "  ")
	d.b.WriteString("}\n")
	return d.b.String()
}

type dot struct{ b strings.Builder }

// plan draws the steps of a plan, and what lies between them; within stands before the ids of one that is a step's own.
func (d *dot) plan(p *plan.Plan, within, indent string) {
	out := outputs(p)
	for i := range p.Steps {
		d.step(p, i, within, indent, out[i])
	}
	for _, wave := range p.Waves() {
		if len(wave) < 2 || slices.ContainsFunc(wave, func(i int) bool { return p.Steps[i].Does().Plan != nil }) {
			continue // a box has no rank
		}
		d.b.WriteString(indent + "{ rank=same;")
		for _, i := range wave {
			fmt.Fprintf(&d.b, " \"%s%s\";", within, p.Steps[i].ID)
		}
		d.b.WriteString(" }\n")
	}
	for i := range p.Steps {
		for _, dep := range p.Steps[i].Deps {
			d.edge(p, dep, i, within, indent)
		}
	}
}

// step draws one step: as a node, or as a box where it has a plan of its own. In that a point stands for it, since edges
// lead to nodes alone.
func (d *dot) step(p *plan.Plan, i int, within, indent string, isOutput bool) {
	s := &p.Steps[i]
	does := dotEscapes.Replace(does(p, i))
	attrs := fmt.Sprintf("label=\"%s\\n%s\"", s.ID, does)
	if c := remarks(s); c != "" {
		attrs = fmt.Sprintf("label=\"%s\\n%s\\n%s\"", s.ID, does, dotEscapes.Replace(printable(c)))
	}
	if isOutput {
		attrs += ", penwidth=2"
	}
	if dashed(s) {
		attrs += ", style=\"rounded,dashed\""
	}
	if s.Does().Plan == nil {
		fmt.Fprintf(&d.b, "%s\"%s%s\" [%s];\n", indent, within, s.ID, attrs)
		return
	}
	fmt.Fprintf(&d.b, "%ssubgraph \"cluster_%s%s\" {\n", indent, within, s.ID)
	fmt.Fprintf(&d.b, "%s  graph [%s];\n%s  \"%s%s\" [shape=point, style=invis];\n", indent, attrs, indent, within, s.ID)
	d.plan(s.Does().Plan, within+s.ID+"/", indent+"  ")
	fmt.Fprintf(&d.b, "%s}\n", indent)
}

// edge draws that a step waits for another.
func (d *dot) edge(p *plan.Plan, from, to int, within, indent string) {
	var attrs []string
	switch {
	case p.Steps[to].Regards(from):
		attrs = append(attrs, "style=dotted", "label=\""+however+"\"")
	case p.Steps[from].Optional:
		attrs = append(attrs, "style=dashed")
	}
	if p.Steps[from].Does().Plan != nil {
		attrs = append(attrs, "ltail=\"cluster_"+within+p.Steps[from].ID+"\"")
	}
	if p.Steps[to].Does().Plan != nil {
		attrs = append(attrs, "lhead=\"cluster_"+within+p.Steps[to].ID+"\"")
	}
	style := ""
	if len(attrs) > 0 {
		style = " [" + strings.Join(attrs, ", ") + "]"
	}
	fmt.Fprintf(&d.b, "%s\"%s%s\" -> \"%s%s\"%s;\n", indent, within, p.Steps[from].ID, within, p.Steps[to].ID, style)
}
