package agents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// tooMany refuses an answer that would make more calls than the budget has steps left. What a list has items is not known
// before it runs: there, the budget is asked before the next round.
func (l *Loop) tooMany(round int, x *reading) []fault.Problem {
	spent := l.Usage(round)
	left := spent.Left().Steps
	if x.answer == nil || left == 0 { // no bound
		return nil
	}
	_, rest := x.answer.Runs(l.Definition.Advance)
	calls, left := int64(0), max(left, 0)
	for i, c := range x.answer.Calls {
		own := i
		for x.answer.Calls[own].Within >= 0 {
			own = x.answer.Calls[own].Within
		}
		s, settled := x.admits.Settled[i]
		if locked := settled && s.Err != nil && s.Err.Code == fault.Locked; c.Entry != "" && !locked && !slices.Contains(rest, own) {
			calls++
		}
	}
	if calls <= left {
		return nil
	}
	hint := fmt.Sprintf("answer with at most %d of them, the most important first; calls of plans within steps count too", left)
	if left == 0 {
		hint = `answer with an "output" alone`
	}
	return []fault.Problem{{Code: fault.BudgetExceeded,
		Message: fmt.Sprintf("this answer makes %d calls, and the budget leaves %d; nothing of it was run", calls, left), Hint: hint}}
}

// tooLong refuses an answer whose steps would have names that are too long, or plans that stand too deep.
func tooLong(scope string, x *reading) []fault.Problem {
	if x.answer == nil {
		return nil
	}
	for i, path := range x.paths {
		token := subjects.InScope(scope, path)
		if items := 8 * strings.Count(path, "/"); len(token)+items+8 > subjects.MaxStepToken || !subjects.ValidStepToken(token) {
			return []fault.Problem{{Code: fault.LimitExceeded, Step: x.answer.Calls[i].ID,
				Message: "this step stands too deep, or the ids down to it are too long", Hint: "write shorter ids, or fewer plans within plans"}}
		}
	}
	return nil
}

// tooDeep refuses a fragment of which a step, in plans and templates too, would stand too deep in the run, or be named by
// more bytes than there are: what is recorded of such would be taken for nobody's. An agent needs room for its rounds.
func tooDeep(p *plan.Plan, scope string) *fault.Problem {
	above := 0
	segments, _ := subjects.ParseStepToken(scope)
	for _, s := range segments {
		if s.Kind == subjects.StepSegment || s.Kind == subjects.ItemSegment {
			above++
		}
	}
	return deeper(p, above, len(scope), "")
}

// numberRoom is what the number of an item, or of an iteration, takes in a token, and roundRoom what a call in a round.
const (
	numberRoom = len("=1000000/")
	roundRoom  = numberRoom + len("=summary")
)

func deeper(p *plan.Plan, above, bytes int, top string) *fault.Problem {
	for i := range p.Steps {
		s := &p.Steps[i]
		id, own, length := top, above, bytes+numberRoom
		if s.ID != plan.IterationStep {
			length += len(s.ID) + 1
			if id == "" {
				id = s.ID
			}
		}
		within := own
		if s.ID != plan.IterationStep {
			within++
		}
		if s.Agent() != nil {
			own, length = within, length+roundRoom
		}
		if own > subjects.MaxComposites || length > subjects.MaxStepToken {
			return &fault.Problem{Code: fault.LimitExceeded, Step: id,
				Message: "something within this step would stand too deep in the run, or be named by too many bytes: plans, templates and the rounds of agents count together",
				Hint:    fmt.Sprintf("put at most %d of them around a call, those that this agent is called in included; write shorter ids", subjects.MaxComposites)}
		}
		if s.Plan != nil {
			if problem := deeper(s.Plan, within, length, id); problem != nil {
				return problem
			}
		}
	}
	return nil
}
