package orchestrator

import (
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// checkTaken: a step of language 2 is dispatched only where the records say so: all that it refers to is over, each
// plain reference finds a success, and the condition is true.
func (t *truths) checkTaken(x *truth, a subjects.Attempt) {
	if x.reused || len(x.out[a.Step]) > 0 || t.nested[x.digest] != nil {
		return // looked at before, or what a tool is called with says it
	}
	id, _, _ := subjects.SplitItem(a.Step)
	begun, err := reference.Begun(x.text(), x.contracts(), x.decided)
	if err != nil {
		t.w.violate("I6", "the records of %s are those of no run: %v\n%s", x.id.ID, err, x.body)
		return
	}
	if !begun[id] {
		t.w.violate("I3", "%s was dispatched, which the records don't say\n%s", a.MessageID(), x.body)
	}
	t.w.stats["dispatch in language 2"]++
}

// checkNotTaken: what was not taken or was skipped never ran.
func (t *truths) checkNotTaken(x *truth, doc *outcome.Run) {
	eachStep(doc.Steps, func(st *outcome.Step) {
		t.w.stats["step "+string(st.Status)+" in language 2"]++
		if (st.Status == outcome.StepNotTaken || st.Status == outcome.StepSkipped) && len(x.out[st.ID])+x.effects[st.ID] > 0 {
			t.w.violate("I3", "step %s is %s and was dispatched", st.ID, st.Status)
		}
	})
}

// diesUntold lets an orchestrator die between the evaluation of a condition and its record, in worlds where processes
// die.
func (w *world) diesUntold(p *process) bool {
	if w.healed || w.knobs.crash == 0 || !w.chance(3) {
		return false
	}
	w.stats["crash between an evaluation and its record"]++
	p.kill("before it told what a condition came to")
	return true
}
