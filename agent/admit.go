package agent

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// Call is a call of an answer, in the answer's order. Those of a plan within a call stand behind it.
type Call struct {
	ID string
	// Entry is the name that the planner calls; empty for a value and for a call that has a plan of its own.
	Entry string
	// After are the calls that it depends on, by reference or depends_on: calls of the same plan, by their places.
	After []int
	// Within is the call whose plan it stands in; -1 for none.
	Within int
	// Repeated says that it may be made more than once, Listed that it is so side by side, for the items of a list.
	Repeated, Listed bool
	// Times is how often it is made at most, as far as the answer says: a list that it refers to counts as one.
	Times int
	// Arguments are those of a call that refers to nothing; nil where they are not known yet.
	Arguments json.RawMessage
}

// Admission is what becomes of the calls of an answer.
type Admission struct {
	// Waits are for each call those of the same plan that it waits for beside After, whatever they come to: a call that
	// moves the state waits for those before it that the state is for, and those behind it wait for that call.
	Waits [][]int
	// Settled are the calls that are not made, by their places: they have come to something already.
	Settled map[int]Settled
	// Problems are for the calls that no answer may have, Lists for those that it may not have in lists.
	Problems, Lists []fault.Problem

	calls    []Call
	children [][]int // of each plan: of the answer's own at 0, of that within call i at i+1
	order    []int   // all calls, each behind what it waits for
	place    []int   // of each call in order
}

// Settled is what a call has come to that is not made.
type Settled struct {
	Result json.RawMessage
	Err    *fault.Error // nil for a success
}

// line puts the calls of a plan in order: that of the answer, but what a call depends on before it, and behind a call
// that has a plan those of the plan.
func (a *Admission) line(plan int, done []bool) {
	for _, c := range a.children[plan+1] {
		a.visit(c, done)
	}
}

func (a *Admission) visit(c int, done []bool) {
	if done[c] {
		return
	}
	done[c] = true
	for _, d := range slices.Sorted(slices.Values(a.calls[c].After)) {
		a.visit(d, done)
	}
	a.order = append(a.order, c)
	a.line(c, done)
}

// Behind returns the calls that one waits for, at any distance and in the order of the answer: what of the round it may
// see of the blackboard and of the arguments of facades.
func (a *Admission) Behind(call int) (calls []int) {
	seen, todo := map[int]bool{}, []int{}
	add := func(calls []int) {
		for _, d := range calls {
			if !seen[d] {
				seen[d] = true
				todo = append(todo, d)
			}
		}
	}
	for c := call; c >= 0; c = a.calls[c].Within { // what a plan waits for, its calls do
		add(a.calls[c].After)
		add(a.Waits[c])
	}
	for len(todo) > 0 {
		c := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		add(a.calls[c].After)
		add(a.Waits[c])
		add(a.children[c+1]) // and who waits for a plan waits for its calls
	}
	for c := range seen {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(x, y int) int { return a.place[x] - a.place[y] })
	return calls
}

// above reports whether a call stands in the plan of another, at any depth.
func (a *Admission) above(call, composite int) bool {
	for c := a.calls[call].Within; c >= 0; c = a.calls[c].Within {
		if c == composite {
			return true
		}
	}
	return false
}
