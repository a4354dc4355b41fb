package task

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Round says where a call stands in the loop of an agent's step: in which round, and as what of it, "the planner" for
// the call that asks what to do next. ok is false for one that is no call of such a loop. Iterations of a repeat have the
// same tokens but for their planner's: whoever asks knows that the step is an agent's.
func Round(step, token string) (round int, call string, ok bool) {
	inside, within := strings.CutPrefix(token, step+"/")
	if !within {
		return 0, "", false
	}
	segments, ok := subjects.ParseStepToken(token)
	depth := strings.Count(step, "/") + 1
	if !ok || len(segments) < depth+2 || segments[depth].Kind != subjects.IterationSegment {
		return 0, "", false
	}
	if _, call, _ = strings.Cut(inside, "/"); segments[depth+1].Kind == subjects.CallSegment && segments[depth+1].Name == "plan" {
		call = "the planner"
	}
	return segments[depth].Number, call, true
}

// rounds says in which round agents are whose step is not over; short leaves out whose round it is.
func rounds(steps []outcome.Step, short bool) (said []string) {
	for i := range steps {
		s, last := &steps[i], -1
		for k := range s.Steps {
			if n, call, ok := Round(s.ID, s.Steps[k].ID); ok && call == "the planner" {
				last = max(last, n)
			}
		}
		switch {
		case last < 0 || s.Status.Terminal():
		case short:
			said = append(said, fmt.Sprintf("round %d", last))
		default:
			said = append(said, fmt.Sprintf("round %d of %s", last, s.ID))
		}
	}
	return said
}
