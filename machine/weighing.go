package machine

import (
	"slices"
	"time"
)

// Whether a person is asked about a call is found out before it begins, and recorded: of a condition that its tool's contract
// has, or of the guards of its agent that are conditions and ask. Of these each asks, one after the other, about what the
// answers before have made of the call. So nothing is called that such a guard is not true of, and no person has let it pass
// as it is.

// weighings are those of a call.
type weighings struct {
	guard     int    // that asks now, from 1; 0 for none
	passed    []int  // the guards, from 1, which people have let pass what it would be called with
	arguments []byte // that the last answer which changed them has left; nil for what its planner wrote
	answers   int
}

// Weighing is what is to be found out of a call.
type Weighing struct {
	// Number counts the times that it is, of the call, from 1: one more than the answers that let it go on.
	Number int
	// Passed are the guards, from 0, which people have let it pass as it is now.
	Passed []int
	// Asks says that a person is asked in any case.
	Asks bool
}

// Weighs returns what is to be found out of a call that waits for that, or is asked about because of it.
func Weighs(r *Run, c Call) Weighing {
	w := Weighing{Number: 1}
	if i, ok := r.index(c); ok {
		w.Asks = r.asks(i)
	}
	x := r.weighings[c]
	if x == nil {
		return w
	}
	w.Number, w.Asks = x.answers+1, false // people have answered to the plan and the contract
	for _, guard := range x.passed {
		w.Passed = append(w.Passed, guard-1)
	}
	return w
}

// asksEachGuard reports whether it is to be found out of a call, and once more behind each answer, whether a guard asks.
func asksEachGuard(r *Run, i int) bool { return r.start.EachGuard && asksGuards(r, i) }

// isFurther reports whether a call is asked about again, for a guard alone: what its step says of answers is of the first.
func isFurther(r *Run, c Call) bool { return r.weighings[c] != nil }

// weigh lets a call wait until it is found out whether a person is asked about it.
func weigh(r *Run, i int, out *Effects) {
	s := &r.calls[i]
	s.state, s.since = weighing, r.seq
	out.Weigh = append(out.Weigh, s.Call)
}

// weighed goes on with a call of which that was recorded.
func weighed(r *Run, i int, t *Told, at time.Time, out *Effects) {
	if !t.Holds && t.Error == nil {
		r.begins(i, at, out)
		return
	}
	c := r.calls[i].Call
	if x := r.weighings[c]; x != nil {
		x.guard = t.Guard
		before := r.asked[c] // it was answered, and the answer is told of with the others
		r.keepAnswer(before)
	}
	r.ask(i, at, out)
	if asksEachGuard(r, i) {
		r.asked[c].guard = t.Guard
	}
}

// approvedOf takes note of what an answer has let a call pass. Who changes the arguments has made another call of it, which
// passes the guard that he was asked for, and is looked at by all others.
func approvedOf(r *Run, q *Question, a *Answer) {
	r.spend(r.nameOf(q.Call), q.Number)
	x := r.weighings[q.Call]
	if x == nil {
		if x = (&weighings{}); r.weighings == nil {
			r.weighings = map[Call]*weighings{}
		}
		r.weighings[q.Call] = x
	}
	x.answers++
	if a.Arguments != nil {
		x.passed, x.arguments = nil, a.Arguments
	}
	if x.guard = 0; q.guard > 0 && !slices.Contains(x.passed, q.guard) {
		x.passed = append(x.passed, q.guard)
	}
}

// keepAnswer lets an answer be told of that is not the last about its call.
func (qs *questions) keepAnswer(q *Question) {
	if qs.guardAnswers == nil {
		qs.guardAnswers = map[Call][]*Question{}
	}
	qs.guardAnswers[q.Call] = append(qs.guardAnswers[q.Call], q)
}
