package machine

import "slices"

// Numbers are those that the steps of a scope have in their run: a Call's Step. Those of the plan that the scope began
// with stand together; each that an amendment added has one of its own, higher than those before it.
type Numbers struct {
	first, own int
	later      []int
}

// Of returns the number of the step that a plan numbers so.
func (n Numbers) Of(step int) int {
	if step >= n.own {
		return n.later[step-n.own]
	}
	return n.first + step
}

// Step returns how the plan numbers a step of the scope.
func (n Numbers) Step(number int) int {
	if at := number - n.first; at < n.own {
		return at
	}
	at, _ := slices.BinarySearch(n.later, number)
	return n.own + at
}

// First returns the number of the plan's first step, by which a scope may be known: it never changes.
func (n Numbers) First() int { return n.first }
