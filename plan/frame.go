package plan

import (
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// frame is what a parser knows of one plan: of the document, or of one within a step of it.
type frame struct {
	plan *Plan
	root int32  // its object
	at   string // pointer of that

	outer *frame // of the plan whose step it is of; nil for the document
	of    int    // that step

	within string // the ids of the steps that the plan lies within, as a token; subjects.RootScope for the document
	token  string // the longest one that the step may have which it is of, the numbers of items among it
	above  int    // how many steps it lies within
	done   bool   // the result of one of them is there already

	over func(step int) bool // of an amendment: whether the result of a step is there already; nil for any other plan

	stepsAt   string // pointer of the array of steps
	order     []int  // of an amendment: the numbers of the steps in that array; nil where they stand in their order
	free      int    // steps from here on may wait for each other; those before were read, and wait for none of them
	steps     []stepNodes
	ids       []string // of the steps, once they were needed
	selfLoops []int    // steps that refer to themselves; reported already
	unread    int      // where in strangers its own begin
	shape     int      // while the plan's output is read, the number of the step that it stands for, plus one

	right   map[string]bool // whom the references of the step rightOf−1 refer to, once that was asked for
	rightOf int

	dependents []dependent // steps that call a tool which depends on others
}

// node returns the parts of a step. Of one that was there before an amendment there are none.
func (f *frame) node(i int) *stepNodes {
	if f.order == nil {
		return &f.steps[i]
	}
	if at := f.added(i); at >= 0 {
		return &f.steps[at]
	}
	return &stepNodes{}
}

// added returns which of the steps that an amendment adds has a number: that behind the last for what its output is read
// as, -1 for a step that was there before.
func (f *frame) added(i int) int {
	if f.shape == i+1 {
		return len(f.order)
	}
	if at := i - f.free; f.free > 0 {
		return max(at, -1) // all of them stand behind those that were there, in their order
	}
	return slices.Index(f.order, i)
}

// here is the place of the plan in hand.
func (p *parser) here() place { return place{plan: p.at} }

// subPlan reads the plan of a composite, in the same words as any plan. It sees its own steps and its input.
func (p *parser) subPlan(i int) {
	n := p.node(i).plan
	if n == 0 {
		caller{p}.body(i)
		repeatReader{p}.around(i)
		return
	}
	at := p.below(p.stepAt(i), n)
	if k := p.tape[n].Kind; k != jsontape.Object {
		p.invalid(at, `write "plan": {"steps": […]}`, "a plan must be an object, but is "+p.shown(n))
		return
	}
	token := p.tokenOf(i)
	if p.above == subjects.MaxComposites {
		p.col.addf(fault.LimitExceeded, at.String(), "let a step further out hold these steps",
			"there are %d plans around this one, at most %d are allowed", p.above, subjects.MaxComposites)
		return
	}
	outer := p.frame
	p.frame = frame{
		root: n, at: at.String(), within: subjects.InScope(p.within, p.plan.Steps[i].ID), token: token,
		outer: &outer, of: i, above: p.above + 1, done: p.isDone(i), unread: len(p.strangers),
	}
	input := p.refs.input
	p.refs.input = true
	p.read()
	inner := p.frame
	p.complete()
	p.frame, p.refs.input = outer, input
	p.frames = append(p.frames, inner)
	p.plan.Steps[i].Plan = inner.plan
}

// outside says how what is referred to in a plan within a step gets there, where it is a step beside one of those that the
// plan lies within, or the item of such; empty where it is neither.
func (f *frame) outside(id string) string {
	s, deeper := f.around(id)
	if s == nil {
		return ""
	}
	hint := fmt.Sprintf(`the plan of the step %q sees its own steps and its input alone: write "arguments": {%q: "$ref:%s"} beside that plan, `,
		s.ID, id, id)
	if deeper {
		return hint + fmt.Sprintf("hand $input.%s on in the same way, and write it here", id)
	}
	return hint + fmt.Sprintf("and $input.%s here", id)
}

// around returns the step, of those that the plan in hand lies within, beside which there is a step of such an id, or whose
// item has that name; nil for none. deeper says that it is not the nearest.
func (f *frame) around(id string) (s *Step, deeper bool) {
	for in := f; in.outer != nil; in = in.outer {
		s = &in.outer.plan.Steps[in.of]
		if _, beside := in.outer.plan.ids.find(id); beside && s.ID != id || s.ForEach != nil && s.ForEach.As == id {
			return s, in != f
		}
	}
	return nil, false
}

// tokenOf returns the longest token that a step may have, the numbers of items among it.
func (p *parser) tokenOf(i int) string {
	s := &p.plan.Steps[i]
	token := subjects.InScope(p.token, s.ID)
	if s.ForEach != nil {
		token = subjects.ItemToken(token, MaxItems-1)
	}
	if s.Repeat != nil {
		token = subjects.Iteration(token, MaxIterations-1)
	}
	if len(token) > subjects.MaxStepToken {
		p.col.addf(fault.LimitExceeded, p.stepAt(i).String(), "give it and the steps around it shorter ids",
			"the ids down to the step %q have %d bytes together, at most %d are allowed", clip(s.ID), len(token), subjects.MaxStepToken)
	}
	return token
}

// complete fills in what follows from the steps of a plan, as far as nothing is wrong.
func (p *parser) complete() {
	if p.col.failed() {
		return
	}
	p.plan.Language = 1
	if p.second || p.above > 0 {
		p.plan.Language = 2
		fillNeeds(p.plan, func(step int) []int { return p.node(step).ordered })
	}
	if p.above > 0 && p.plan.Output == nil {
		p.plan.Output = p.plan.byID()
	}
	p.plan.link()
	for i := range p.plan.Steps {
		p.plan.Steps[i].iterations()
	}
	p.plan.slim()
}

// form reads what a step does: it calls a tool, is a value, or has a plan of its own.
func (p *parser) form(i int, m *members) {
	if n := m[stepPartial]; n != 0 && m[stepPlan] == 0 {
		p.invalid(p.below(p.stepAt(i), n), "remove it", `"partial" is of a step with a plan of its own`)
	}
	switch {
	case m[stepValue] != 0:
		valueReader{p}.form(i, m)
	case m[stepPlan] != 0:
		p.composite(i, m)
	case m[stepAgent] != 0:
		inlineReader{p}.form(i, m)
	default:
		p.stepTool(i, m[stepTool])
		caller{p}.tool(i, m)
	}
}

// composite reads the options of a step with a plan of its own.
func (p *parser) composite(i int, m *members) {
	p.second = true
	at := p.stepAt(i)
	if n := m[stepTool]; n != 0 {
		p.invalid(p.below(at, m[stepPlan]), "remove one of them, or make two steps of it", `a step has a "tool" or a "plan", not both`)
		p.stepTool(i, n)
	}
	inlineReader{p}.beside(i, m, stepPlan)
	if n := m[stepRetry]; n != 0 {
		p.invalid(p.below(at, n), "move it into the steps of its plan; \"repeat\" runs the plan again", "a step with a plan of its own is not tried again as a whole")
	}
	if n := m[stepPartial]; n != 0 {
		p.plan.Steps[i].Partial = p.flag(n, at)
	}
}
