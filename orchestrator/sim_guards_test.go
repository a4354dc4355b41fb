package orchestrator

import (
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// In two of five worlds the agent has guards: one on calls, which does not let an item of its second round pass, and one on
// results, which does not let what a call of its second round returns pass: a number that is no agent's input.

// guards reports whether this is such a world.
func (w *world) guards() bool { return w.seed%5 < 2 }

func (w *world) simGuards() string {
	if !w.guards() {
		return "null"
	}
	return `[{"on":"call","when":"$args.i != 2"},{"on":"result","when":"$tool != 'opener/a' or $result.n != 103"}]`
}

// guardedDispatched checks that nothing is handed to a worker that a guard does not let pass, nor what waits for such.
func (t *truths) guardedDispatched(a subjects.Attempt) {
	if t.w.guards() && (strings.HasSuffix(a.Step, "/g=1") || a.Step == simBehind) {
		t.w.violate("A9", "%s was dispatched past a guard", a.MessageID())
	}
}

// checkGuarded checks that what a call returned has not passed its guard, and that the items of none have.
func (t *truths) checkGuarded(x *truth, doc *outcome.Run) {
	if !t.w.guards() {
		return
	}
	eachStep(doc.Steps, func(st *outcome.Step) {
		switch {
		case !strings.HasSuffix(st.ID, "/w"):
		case st.Status == outcome.StepSucceeded:
			t.w.violate("A9", "%s has passed a guard", st.ID)
		case st.Error != nil && st.Error.Code == fault.Rejected && x.succeeded[st.ID]:
			t.w.stats["a guard said no to a result"]++
		}
	})
	for step := range x.succeeded {
		if strings.HasSuffix(step, "/g=1") {
			t.w.violate("A9", "%s has passed a guard", step)
		}
	}
}
