package orchestrator

import (
	"bytes"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// In a third of the worlds with an agent a call of its second round asks for a new plan. What waited in that round never
// begins, what was out may end, and the next request says why.

const (
	simReplanner = "a/=1/w" // the call that asks for a new plan
	simBehind    = "a/=1/u" // the call that waits for it
	simWhy       = "what w was to do has changed"
)

// replans reports whether this is such a world.
func (w *world) replans() bool { return w.seed%3 == 1 }

// playsCall answers a call that an agent makes.
func (w *world) playsCall(a subjects.Attempt, args []byte) reference.Reply {
	if a.Step == simReplanner && w.replans() {
		return reference.Reply{Err: &reference.Err{Code: string(fault.Replan), Message: simWhy}}
	}
	w.reachedBack(a, args)
	return reference.Reply{Body: bytes.Clone(args)}
}

// replanned reports whether a worker's record stands by which a call asks for a new plan.
func (x *truth) replanned() bool {
	for _, err := range x.records[simReplanner] {
		if err != nil && err.Code == fault.Replan {
			return true
		}
	}
	return false
}

// excusedByReplan reports whether the error of a step's record keeps the agent from nothing: it asked for a new plan, or was
// given up for that.
func (x *truth) excusedByReplan(step string, err *fault.Error) bool {
	return x.replanned() && strings.HasPrefix(step, "a/=1/") && (err.Code == fault.Replan || err.Code == fault.Cancelled)
}

// replanAsked checks that the requests behind a round that was cut short say why.
func (t *truths) replanAsked(x *truth, round int, whole []byte) {
	if round < 2 || !x.replanned() || t.w.shrinks() { // there a round has no room for its errors
		return
	}
	if !bytes.Contains(whole, []byte(`{"code":"replan","message":"`+simWhy)) {
		t.w.violate("A8", "a planner was asked with %s, which does not say what asked for a new plan", whole)
	}
	t.w.stats["a planner was told why it is to plan anew"]++
}

// checkReplanned checks that nothing began behind the call that asked for a new plan.
func (t *truths) checkReplanned(x *truth, doc *outcome.Run) {
	if !x.replanned() {
		return
	}
	eachStep(doc.Steps, func(st *outcome.Step) {
		switch {
		case st.ID == simBehind && (st.Status != outcome.StepCancelled || st.Attempts > 0):
			t.w.violate("A8", "%s is %s in a round that was over for starting", st.ID, st.Status)
		case st.ID == simReplanner && (st.Error == nil || st.Error.Code != fault.Replan || x.records[st.ID][st.Attempts+1] != nil):
			t.w.violate("A8", "%s asked for a new plan, and had another attempt after %d: %v", st.ID, st.Attempts, st.Error)
		}
	})
	t.w.stats["a round that was cut short by its call"]++
}
