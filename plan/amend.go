package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// Amendment is what is added to the plan of a scope while its run goes on (plan language, "Amendments").
type Amendment struct {
	// Add are steps, as they stand in a plan. They may refer to each other and to those that are there.
	Add []json.RawMessage
	// Again reports whether an added step may take the place of the one that has its id; nil for none.
	Again func(step int) bool
	// Gone reports whether a step was discarded before it was decided, so that nothing may refer to it; nil for none.
	Gone func(step int) bool
	// Done reports whether the result of a step is there from a run that this one tries again (Limits.Done); nil for none.
	Done func(step int) bool
	// Output and OutputSteps take the place of what the plan says; nil leaves that.
	Output      json.RawMessage
	OutputSteps []string
	// Scope is the token of the composite that has the plan; subjects.RootScope for that of the run.
	Scope string
	// Offset is where the plans within added steps are numbered from (Plan.Offset).
	Offset int
	// After are, for each added step, others that it waits for, whatever these come to; nil for none.
	After [][]string
	// Round says that the plan is that of a round of an agent: it has no input, and returns nothing that it does not name.
	Round bool
	// Templates are those that added steps may call, by name, for who reads an amendment that was accepted, without a
	// catalog.
	Templates map[string]*Template
}

// Amended is a plan with what was added to it.
type Amended struct {
	Plan *Plan
	// Added are the numbers that the steps of Amendment.Add have in it, in their order: one that is written again has that
	// of the step it takes the place of, all others follow those that were there.
	Added []int
	// Offset follows the numbers of all plans within added steps.
	Offset int
}

// Addition are the steps of an amendment that could be made.
type Addition struct {
	// Steps are in the order of Amendment.Add. Nothing refers to them by the numbers in them.
	Steps []Step
	// More is how many steps the plan would have more.
	More int
}

// amend is Plan.Amend.
func amend(p *Plan, a *Amendment, c Catalog) (*Amended, Report) {
	x := readAmendment(p, a, c)
	if x.col.failed() {
		return nil, x.abandon()
	}
	x.finish(x.says.output, x.says.outputSteps)
	release(x.plan)
	return &Amended{x.plan, x.order, x.offset}, x.report()
}

// Check reads an amendment as Plan.Amend does, and makes no plan of it: what that costs follows from the amendment, not
// from the plan. The result is nil if and only if the report has problems.
func Check(p *Plan, a *Amendment, c Catalog) (*Addition, Report) {
	x := readAmendment(p, a, c)
	if x.col.failed() {
		return nil, x.abandon()
	}
	added := &Addition{More: len(x.plan.Steps) - len(p.Steps), Steps: make([]Step, len(x.order))}
	for k, i := range x.order {
		added.Steps[k] = x.plan.Steps[i]
		added.Steps[k].iterations()
	}
	return added, x.abandon()
}

// readAmendment reads an amendment behind a plan.
func readAmendment(p *Plan, a *Amendment, c Catalog) *amending {
	x := &amending{amendment: a, base: p}
	body, bad := a.document()
	x.parser = newParser(body, c, Limits{}, newLibrary(c, a.Templates))
	x.second = true
	switch {
	case bad != nil:
		x.col.add(bad.Code, "", bad.Message, bad.Hint)
	case x.scan(body):
		x.read()
	}
	return x
}

// abandon lets go of what was read, and returns what is wrong with it.
func (x *amending) abandon() Report {
	r := x.report() // which names steps
	if x.plan != nil && x.plan != x.base {
		giveBack(x.plan)
	}
	return r
}

// document puts an amendment together as the parser reads it.
func (a *Amendment) document() ([]byte, *fault.Error) {
	b, err := json.Marshal(struct {
		Add         []json.RawMessage `json:"add"`
		Output      json.RawMessage   `json:"output,omitempty"`
		OutputSteps []string          `json:"output_steps,omitempty"`
	}{a.Add, a.Output, a.OutputSteps})
	if err != nil {
		return nil, fault.New(fault.MalformedJSON, "the amendment is no JSON: %v", err)
	}
	if len(b) > MaxBytes {
		return nil, fault.New(fault.LimitExceeded, "the amendment has %d bytes, at most %d are allowed", len(b), MaxBytes).
			WithHint("amend in several parts")
	}
	return b, nil
}

// amending is one reading of an amendment.
type amending struct {
	*parser
	amendment *Amendment
	base      *Plan
	again     map[int]bool // steps that are written anew
	says      says
	offset    int
}

// says is what an amendment says of what the plan returns.
type says struct{ output, outputSteps bool }

// read reads the added steps into a copy of the plan, and what it comes to.
func (x *amending) read() {
	steps, output, outputSteps := x.fieldOf(0, "add"), x.fieldOf(0, "output"), x.fieldOf(0, "output_steps")
	above := 0
	if x.amendment.Scope != subjects.RootScope {
		above = 1 + bytes.Count([]byte(x.amendment.Scope), []byte("/"))
	}
	x.refs.input = above > 0 && !x.amendment.Round
	x.frame = frame{within: x.amendment.Scope, token: x.amendment.Scope, above: above, stepsAt: "/add", over: x.over}
	x.plan = x.base
	if !x.place(steps) {
		return
	}
	for i, v := 0, steps+1; v < x.tape[steps].Next; i, v = i+1, x.tape[v].Next {
		x.step(x.order[i], v)
	}
	for k, i := range x.order {
		x.stepDeps(i)
		x.waitsFor(k, i)
	}
	x.lookAround()
	x.dependencies()
	x.refersToGone()
	if output != 0 || outputSteps != 0 {
		x.outputs(outputSteps, output)
	}
	x.cycles()
	x.says = says{output: output != 0, outputSteps: outputSteps != 0}
}

// place finds a number for each added step, in a plan of its own. It reports false where there are too many.
func (x *amending) place(steps int32) bool {
	n := len(x.base.Steps)
	next := n
	x.again, x.order = map[int]bool{}, []int{}
	for v := steps + 1; v < x.tape[steps].Next; v = x.tape[v].Next {
		i := x.takesPlaceOf(v)
		if i < 0 || x.again[i] {
			i = next
			next++
		} else {
			x.again[i] = true
		}
		x.order = append(x.order, i)
	}
	if next > MaxSteps {
		x.col.addf(fault.LimitExceeded, "/add", "run the parts as plans of their own; nothing else was checked in the steps",
			"the plan would have %d steps, at most %d are allowed", next, MaxSteps)
		return false
	}
	x.expanded = next
	x.plan, x.free = extended(x.base, next-n, len(x.again) > 0), n
	if len(x.again) > 0 { // those that were there may wait for added ones
		x.free = 0
	}
	for i := range x.again {
		x.plan.Steps[i] = Step{}
	}
	x.steps = make([]stepNodes, len(x.order), len(x.order)+1)
	return true
}

// over reports whether the result of a step that was there before is from another run.
func (x *amending) over(step int) bool {
	return x.amendment.Done != nil && step < len(x.base.Steps) && !x.again[step] && x.amendment.Done(step)
}

// waitsFor lets an added step wait for others that the amendment names beside it.
func (x *amending) waitsFor(k, i int) {
	if k >= len(x.amendment.After) {
		return
	}
	s := &x.plan.Steps[i]
	for _, id := range x.amendment.After[k] {
		if other, known := x.plan.ids.find(id); known && int(other) != i && !slices.Contains(s.Deps, int(other)) {
			s.Deps = sortedOnce(append(slices.Clone(s.Deps), int(other)))
			s.after = append(s.after, int(other))
		}
	}
}

// lookAround asks for the tools of the steps that were there before, where added ones may have to take what those return.
func (x *amending) lookAround() {
	if len(x.dependents) == 0 {
		return
	}
	for i := range x.base.Steps {
		if s := &x.plan.Steps[i]; s.Tool != "" && !s.Ask {
			x.lookup(s.Tool)
		}
	}
}

// takesPlaceOf returns the step that an added one is written in place of, or -1.
func (x *amending) takesPlaceOf(n int32) int {
	if x.tape[n].Kind != jsontape.Object || x.amendment.Again == nil {
		return -1
	}
	id := x.fieldOf(n, "id")
	if id == 0 || x.tape[id].Kind != jsontape.String {
		return -1
	}
	i, there := x.base.Index(x.str(id))
	if !there || !x.amendment.Again(i) {
		return -1
	}
	return i
}

// refersToGone refuses what refers to a step that was discarded before anything came of it.
func (x *amending) refersToGone() {
	if x.amendment.Gone == nil {
		return
	}
	for k, i := range x.order {
		for _, d := range x.plan.Steps[i].Deps {
			if d < len(x.base.Steps) && !x.again[d] && x.amendment.Gone(d) && x.col.wants(fault.UnknownRef) {
				x.col.add(fault.UnknownRef, fmt.Sprintf("/add/%d", k), fmt.Sprintf("the step %q was discarded", x.plan.Steps[d].ID),
					"refer to another step, or add it under another id")
			}
		}
	}
}

// finish fills in what follows from the added steps.
func (x *amending) finish(output, outputSteps bool) {
	p, n := x.plan, len(x.base.Steps)
	if !output && !outputSteps {
		x.keepOutputs(n)
	}
	if outputSteps {
		p.Output, p.AllOutputs = nil, false
	}
	if !x.amendment.Round && p.Output == nil && x.above > 0 || p.Output != nil && p.Output.plain {
		p.Output = p.byID()
	}
	for _, i := range x.order {
		fillNeed(p, i, func(step int) []int { return x.node(step).ordered })
	}
	if len(x.again) > 0 {
		p.relink()
	} else {
		p.linkFrom(n)
	}
	x.offset = x.amendment.Offset
	for _, i := range x.order {
		p.Steps[i].iterations()
		if inner := p.Steps[i].Plan; inner != nil {
			x.offset = inner.number(x.offset)
		}
	}
	p.slim()
}

// keepOutputs leaves what the plan returns as it is, which extended has copied: of one that returns all its steps, the added
// ones too. They follow in the array that extended left to it, not in that of the base, which others amend meanwhile.
func (x *amending) keepOutputs(n int) {
	p := x.plan
	if !p.AllOutputs {
		return
	}
	for i := n; i < len(p.Steps); i++ {
		p.Outputs = append(p.Outputs, i)
	}
}
