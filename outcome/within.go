package outcome

import (
	"slices"
	"strings"
)

// FailedWithin reports whether something that a step is made of did not succeed, though the step itself may have: an item
// of a for_each step, or a step of its plan. A retry tries that again. In a document of before, which doesn't say of what
// list the items were, they can't be. An agent that succeeded has, whatever the calls of its rounds came to.
func (s *Step) FailedWithin() bool {
	for i := range s.Items {
		if s.List != "" && s.Items[i].Status != StepSucceeded || s.Items[i].FailedWithin() {
			return true
		}
	}
	if s.HasRounds() && s.Status == StepSucceeded {
		return false
	}
	return slices.ContainsFunc(s.Steps, func(x Step) bool { return x.Status.Unsuccessful() || x.FailedWithin() })
}

// HasRounds reports whether what a step is made of are the rounds of an agent.
func (s *Step) HasRounds() bool {
	return len(s.Steps) > 0 && strings.HasSuffix(s.Steps[0].ID, "/=plan")
}
