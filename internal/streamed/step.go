package streamed

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// Step is a step as it is written.
type Step struct {
	Number int    // in the text, from 0
	ID     string // empty for one that has none
	Text   json.RawMessage
	// Tools are those that it may call, also within a plan of its own. There may be names among them that are none.
	Tools []string
	// Agent says that it may define an agent itself, or a step of its plan does.
	Agent bool

	names []string // of steps that it may refer to
}

// newStep looks at a step without judging it.
func newStep(number int, raw json.RawMessage) *Step {
	x := &Step{Number: number, Text: raw}
	s := jsontape.New(raw, plan.MaxDepth)
	defer s.Release()
	s.Record = true
	if s.Scan() != nil || s.Tape[0].Kind != jsontape.Object {
		return x
	}
	l := looking{step: x, src: raw, tape: s.Tape}
	l.fields()
	x.names = slices.DeleteFunc(x.names, func(name string) bool { return name == l.item })
	return x
}

// In looks at a plan as at a step that has it.
func In(plan json.RawMessage) *Step {
	return newStep(0, slices.Concat([]byte(`{"plan":`), plan, []byte("}")))
}

// looking looks for the names in a step.
type looking struct {
	step *Step
	src  []byte
	tape []jsontape.Node
	item string // what the step calls an item of its list, which is no step; empty for one without a list
}

// fields looks at each field of the step. The plan of a step refers to its own steps alone.
func (l *looking) fields() {
	for i := int32(1); i < l.tape[0].Next; {
		key, value := l.text(i), i+1
		switch n := l.tape[value]; {
		case key == "id" && n.Kind == jsontape.String:
			l.step.ID = l.text(value)
		case key == "for_each":
			l.names(value)
			l.list(value)
		case key == "depends_on":
			for v := value; v < n.Next; v++ {
				if l.tape[v].Kind == jsontape.String {
					l.name(l.text(v))
				}
			}
		case key != "plan":
			l.names(value)
		}
		l.tools(i, l.tape[value].Next)
		switch key {
		case "agent":
			l.step.Agent = l.step.Agent || l.tape[value].Kind == jsontape.Object
		case "plan":
			l.agents(value)
		}
		i = l.tape[value].Next
	}
}

// list reads what an item of the list is called.
func (l *looking) list(n int32) {
	l.item = "item"
	for i := n + 1; i < l.tape[n].Next; i = l.tape[i+1].Next {
		if l.tape[n].Kind == jsontape.Object && l.text(i) == "as" && l.tape[i+1].Kind == jsontape.String {
			l.item = l.text(i + 1)
		}
	}
}

// tools notes what is named as a tool, from one node up to another.
func (l *looking) tools(from, to int32) {
	for i := from; i+1 < to; i++ {
		if l.tape[i].Kind != jsontape.String || l.tape[i+1].Kind != jsontape.String {
			continue
		}
		switch l.text(i) {
		case "tool", "_tool", "_delegate":
			l.step.Tools = append(l.step.Tools, l.text(i+1))
		}
	}
}

// agents looks for an agent in the plan of a step. What is taken for one and is none, such as an argument, costs time.
func (l *looking) agents(plan int32) {
	for i := plan; i+1 < l.tape[plan].Next; i++ {
		if l.tape[i].Kind == jsontape.String && l.text(i) == "agent" && l.tape[i+1].Kind == jsontape.Object {
			l.step.Agent = true
		}
	}
}

// names notes what the strings of a value may refer to. It notes too much rather than too little: what is noted and is
// no step holds its own step back until the text is over, and no longer.
func (l *looking) names(value int32) {
	for i := value; i < l.tape[value].Next; i++ {
		if l.tape[i].Kind != jsontape.String {
			continue
		}
		s := l.text(i)
		l.within(s)
		if strings.Contains(s, `\`) { // arguments may be JSON in a string
			l.within(string(jsontape.AppendUnescaped(nil, s)))
		}
		if s == "$ref" && i+1 < l.tape[value].Next && l.tape[i+1].Kind == jsontape.String {
			for way := range strings.SplitSeq(l.text(i+1), "||") {
				l.name(strings.TrimSpace(way))
			}
		}
	}
}

// within notes the references in a text.
func (l *looking) within(s string) {
	for {
		_, rest, there := strings.Cut(s, "$")
		if !there {
			return
		}
		s = rest
		rest = strings.TrimPrefix(rest, "{")
		for _, of := range []string{"ref:", "error:", "status:"} {
			if id, is := strings.CutPrefix(rest, of); is {
				l.name(id)
			}
		}
	}
}

// name notes the id that a text begins with.
func (l *looking) name(s string) {
	end := 0
	for end < len(s) && subjects.IsPlain(s[end]) {
		end++
	}
	if end > 0 && end <= plan.MaxID {
		l.step.names = append(l.step.names, s[:end])
	}
}

// text is that of a string node.
func (l *looking) text(i int32) string {
	n := l.tape[i]
	if n.Kind != jsontape.String {
		return ""
	}
	inside := n.Inside()
	return inside.Text(l.src)
}
