package outcome

import "slices"

// FailedWithin reports whether something that a step is made of did not succeed, though the step itself may have: an item
// of a for_each step, or a step of its plan. A retry tries that again. In a document of before, which doesn't say of what
// list the items were, they can't be.
func (s *Step) FailedWithin() bool {
	for i := range s.Items {
		if s.List != "" && s.Items[i].Status != StepSucceeded || s.Items[i].FailedWithin() {
			return true
		}
	}
	return slices.ContainsFunc(s.Steps, func(x Step) bool { return x.Status.Unsuccessful() || x.FailedWithin() })
}
