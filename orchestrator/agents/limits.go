package agents

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

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
