// Package graph draws a plan for people: its waves as text, or the whole graph in the languages of Mermaid and
// Graphviz.
//
// Drawing is pure: a plan in, text out, the same text every time. Names come out of package plan, where ids and tool
// names have passed their grammars ([A-Za-z0-9_-] and [A-Za-z0-9_.:/-]), so nothing in them can end a quoted label.
// Conditions are any text, and are escaped.
package graph

import (
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Format is a form a plan can be drawn in.
type Format string

// The formats.
const (
	Text    Format = "text"    // waves, for a terminal
	Mermaid Format = "mermaid" // a flowchart that GitHub and most wikis draw
	DOT     Format = "dot"     // Graphviz
)

// Formats lists the formats, the default first.
func Formats() []Format { return []Format{Text, Mermaid, DOT} }

// Options say how to draw. The zero value is plain text, 80 columns wide, with long waves folded.
type Options struct {
	// Width is the number of columns of text; 0: 80. Lines may be longer where a single name is.
	Width int
	// All draws every step of every wave. Otherwise text shows FoldAfter steps of a wave and counts the rest.
	All bool
	// Paint colours a part of the text form; nil: no colours.
	Paint func(Part, string) string
}

// Part is a part of the text form that may have a colour of its own.
type Part int

// The parts.
const (
	PartWave   Part = iota // "wave 1"
	PartStep               // a step's id
	PartTool               // its tool
	PartDeps               // what it waits for
	PartOutput             // the mark of an output step
	PartNote               // head line, folds
)

// FoldAfter is the number of steps of one wave that the text form shows before it folds the rest into a line.
const FoldAfter = 12

// Draw returns the plan in a format. The text ends with a line feed. Errors: InvalidConfig for a format that is not
// known.
func Draw(p *plan.Plan, f Format, o Options) (string, error) {
	switch f {
	case Text, "":
		return drawText(p, o), nil
	case Mermaid:
		return drawMermaid(p), nil
	case DOT:
		return drawDOT(p), nil
	}
	return "", fault.New(fault.InvalidConfig, "the format %q is not known", string(f)).WithHint("text, mermaid or dot")
}

// outputs returns which steps are outputs, or nil where the plan names none and so returns every step.
func outputs(p *plan.Plan) map[int]bool {
	if len(p.Outputs) == len(p.Steps) {
		return nil
	}
	set := make(map[int]bool, len(p.Outputs))
	for _, i := range p.Outputs {
		set[i] = true
	}
	return set
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %ss", Thousands(n), one)
}

// Thousands writes a count with commas: 12,345.
func Thousands(n int) string {
	s := fmt.Sprint(n)
	neg := n < 0
	if neg {
		s = s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// Description is a plan's graph as data.
type Description struct {
	Steps []Node `json:"steps"`
	// Waves holds the ids of the steps of each depth.
	Waves [][]string `json:"waves"`
	// Outputs holds the ids of the steps whose results come back.
	Outputs []string `json:"outputs"`
	// Asks is "approval" where a person is asked before anything begins; else empty.
	Asks string `json:"asks,omitempty"`
}

// Node is one step of a Description.
type Node struct {
	ID        string   `json:"id"`
	Tool      string   `json:"tool"` // empty for a value, and for a step with a plan of its own
	Wave      int      `json:"wave"` // from 1
	DependsOn []string `json:"depends_on"`
	Optional  bool     `json:"optional,omitempty"`
	// If is the condition of the step as written.
	If string `json:"if,omitempty"`
	// Value says that the step calls no tool, and Calc what it computes, where that is all of it.
	Value bool   `json:"value,omitempty"`
	Calc  string `json:"calc,omitempty"`
	// Repeat says how a loop goes on: "until $last.ready, at most 20 times".
	Repeat string `json:"repeat,omitempty"`
	// Asks says that a person is asked before the step, or by it: "approval" or "ask"; empty for neither. What the
	// contract of its tool asks for stands in no plan.
	Asks string `json:"asks,omitempty"`
	// Named are those of DependsOn that the step names by $error or $status: it follows them however they end.
	Named []string `json:"named,omitempty"`
	// Plan is the one that the step has of its own.
	Plan *Description `json:"plan,omitempty"`
}

// Describe returns the graph as data.
func Describe(p *plan.Plan) Description {
	d := Description{Steps: make([]Node, len(p.Steps)), Waves: [][]string{}}
	for i := range p.Steps {
		s := &p.Steps[i]
		d.Steps[i] = Node{ID: s.ID, Tool: s.Does().Tool, Wave: s.Depth + 1, DependsOn: ids(p, s.Deps), Optional: s.Optional, Named: ids(p, s.Named)}
		d.Steps[i].Value, d.Steps[i].Calc = s.Value, p.Calculation(i)
		if s.If != nil {
			d.Steps[i].If = s.If.Text()
		}
		if s.Repeat != nil {
			d.Steps[i].Repeat = s.Repeat.Text()
		}
		if s.Does().Plan != nil {
			inner := Describe(s.Does().Plan)
			d.Steps[i].Plan = &inner
		}
		switch {
		case s.Does().Ask:
			d.Steps[i].Asks = "ask"
		case s.Approval != nil:
			d.Steps[i].Asks = "approval"
		}
	}
	for _, w := range p.Waves() {
		d.Waves = append(d.Waves, ids(p, w))
	}
	d.Outputs = ids(p, p.Outputs)
	if p.Approval != nil {
		d.Asks = "approval"
	}
	return d
}

func ids(p *plan.Plan, steps []int) []string {
	out := make([]string, len(steps))
	for k, i := range steps {
		out[k] = p.Steps[i].ID
	}
	return out
}
