package agents

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// What a run's document tells of its agents beside their calls, in lines for people: what they were told, which of their answers came
// to nothing, and why they did not come to an end.

// At returns a step of a run's plan; nil where there is none.
func At(doc *outcome.Run, id string) *outcome.Step {
	for i := range doc.Steps {
		if doc.Steps[i].ID == id {
			return &doc.Steps[i]
		}
	}
	return nil
}

// IsAgent reports whether a step is an agent, as far as it has begun a round or was spoken to.
func IsAgent(s *outcome.Step) bool {
	if len(s.Steps) == 0 {
		return len(s.Said) > 0
	}
	_, what, ok := Place(s.ID, s.Steps[0].ID)
	return ok && what == ""
}

// Steps returns the steps of a run that are agents (IsAgent): those that stand in its plan.
func Steps(doc *outcome.Run) (all []*outcome.Step) {
	for i := range doc.Steps {
		if IsAgent(&doc.Steps[i]) {
			all = append(all, &doc.Steps[i])
		}
	}
	return all
}

// All returns all steps of a run that are agents (IsAgent), each before those below it.
func All(doc *outcome.Run) (all []*outcome.Step) {
	for s := range within(&outcome.Step{Steps: doc.Steps}) {
		if IsAgent(s) {
			all = append(all, s)
		}
	}
	return all
}

// within yields all that a step is made of, at any depth: each before what it is made of itself.
func within(of *outcome.Step) iter.Seq[*outcome.Step] {
	return func(yield func(*outcome.Step) bool) {
		if of != nil {
			each(of, yield)
		}
	}
}

func each(of *outcome.Step, yield func(*outcome.Step) bool) bool {
	for _, all := range [][]outcome.Step{of.Steps, of.Items} {
		for i := range all {
			if !yield(&all[i]) || !each(&all[i], yield) {
				return false
			}
		}
	}
	return true
}

// LastProblems says, a line each, what was wrong with the last answer of an agent's step that failed over it; none for any other.
func LastProblems(of *outcome.Step) (lines []string) {
	if of == nil || of.Error == nil {
		return nil
	}
	var why struct {
		Problems []fault.Problem `json:"problems"`
	}
	_ = json.Unmarshal(of.Error.Details, &why) // of an error of another kind
	for _, p := range why.Problems {
		line := p.Message
		if p.Path != "" {
			line = p.Path + ": " + line
		}
		if p.Hint != "" {
			line += " (" + p.Hint + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// MostTold is how many problems of an answer, and results of a round, are told of an agent whose loop came to no output.
const MostTold = 8

// LastResults says, a line each, what the steps of the last round came to of an agent's step whose loop ended without an output,
// as far as its error tells; none for any other.
func LastResults(of *outcome.Step) (lines []string) {
	if of == nil || of.Error == nil {
		return nil
	}
	var came struct {
		Last map[string]json.RawMessage `json:"last"`
	}
	_ = json.Unmarshal(of.Error.Details, &came) // of an error of another kind
	for _, id := range slices.Sorted(maps.Keys(came.Last)) {
		lines = append(lines, id+": "+text.Clip(string(came.Last[id]), mostShown))
	}
	return lines
}

// mostShown is how much of a word is shown in a line, in bytes.
const mostShown = 160

// Refusals returns which answers of an agent's planner came to nothing, a line each.
func Refusals(of *outcome.Step) (lines []string) {
	if of == nil {
		return nil
	}
	for _, x := range of.Refused {
		lines = append(lines, fmt.Sprintf("the answer of round %d was refused: %s", x.Round, whyRefused(&x)))
	}
	return lines
}

// RefusedCalls returns, by the calls of planners of a run whose answers came to nothing, why they did not.
func RefusedCalls(doc *outcome.Run) map[string]string {
	why := map[string]string{}
	for _, of := range All(doc) {
		for _, x := range of.Refused {
			why[subjects.OwnCall(subjects.Iteration(of.ID, x.Round), "plan")] = whyRefused(&x)
		}
	}
	return why
}

// whyRefused says why in few words.
func whyRefused(x *outcome.Refused) string {
	if len(x.Problems) == 0 {
		return "nothing more is known"
	}
	p := &x.Problems[0]
	why := string(p.Code) + ": " + text.Clip(p.Message, mostShown)
	if p.Path != "" {
		why = p.Path + ": " + why
	}
	if x.Count > 1 {
		why += fmt.Sprintf(" (and %d more)", x.Count-1)
	}
	return why
}

// neverAsked reports whether a call of a planner is over and was never made.
func neverAsked(call *outcome.Step) bool {
	return call.Status.Terminal() && call.Status != outcome.StepSucceeded && call.Attempts == 0
}

// unasked reports whether the planner of a round of an agent will never be asked, such as where the budget was used up
// before. Of a document without rounds that is not known.
func unasked(agent *outcome.Step, round int) bool {
	for i := range agent.Steps {
		s := &agent.Steps[i]
		if n, what, ok := Place(agent.ID, s.ID); ok && n == round && what == "" {
			return neverAsked(s)
		}
	}
	return agent.Status.Terminal() && len(agent.Steps) > 0
}

// Said returns what people have said to an agent, a line each: who, which round's planner is told, and what.
func Said(of *outcome.Step) (lines []string) {
	if of == nil {
		return nil
	}
	for _, w := range of.Said {
		by, told, content := w.By, "no round has taken it", string(w.Content)
		switch {
		case by == "":
			by = "somebody"
		case !w.Verified:
			by += " (unverified)"
		}
		switch {
		case w.Round == nil:
		case unasked(of, *w.Round):
			told = fmt.Sprintf("for round %d, whose planner was not asked", *w.Round)
		default:
			told = fmt.Sprintf("told in round %d", *w.Round)
		}
		said := "said"
		if w.Interrupt {
			said = "interrupted"
		}
		content = text.Clip(content, mostShown)
		switch {
		case w.Bytes > 0 && content == "":
			content = fmt.Sprintf("(%d bytes, too long to be kept here)", w.Bytes)
		case w.Bytes > 0:
			content += fmt.Sprintf(" (the beginning of %d bytes)", w.Bytes)
		case content == "": // of an orchestrator that says no more
			content = "(too long to be shown)"
		}
		lines = append(lines, fmt.Sprintf("%s %s, %s: %s", by, said, told, content))
	}
	return lines
}

// Line is what is told of one agent of several.
type Line struct{ Agent, Text string }

// Others tells of the agents of a run that are no steps of its plan, such as those below another and the items of a list: which of
// their answers came to nothing, and what people have said to them.
func Others(doc *outcome.Run) (lines []Line) {
	for _, s := range All(doc) {
		if At(doc, s.ID) != nil {
			continue
		}
		for _, line := range slices.Concat(Refusals(s), Said(s)) {
			lines = append(lines, Line{s.ID, line})
		}
	}
	return lines
}
