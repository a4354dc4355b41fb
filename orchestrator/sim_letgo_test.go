package orchestrator

import (
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// watchLetGo counts what a world has of machines that let go of results.
func (o *orch) watchLetGo(l *loop) {
	if l.driver.letGoFrom == letGoFrom { // no run of such a world holds as much
		return
	}
	for _, r := range l.runs.byID {
		if r.machine == nil || machine.Away(r.machine) == 0 {
			continue
		}
		o.w.stats["a turn of a run whose results were let go of"]++
		switch {
		case r.recalling:
			o.w.stats["a turn while all that was let go of was read again"]++
		case r.busy && r.agents != nil:
			o.w.stats["a turn while what an agent's round refers to was read again"]++
		}
	}
}

// otherValue is the record of a result with another value in it, as a program would have it that reads the wrong one.
func otherValue(e *kv.Entry) *kv.Entry {
	w := wire.ParseResult(e.Header, e.Data)
	if w.Error != nil || w.Handle != nil || w.Asks != nil {
		return e
	}
	other := *e
	other.Data = []byte(`{"n":"another"}`)
	return &other
}

// checkResults: a document has the result of each call as its record has it, whatever the owner held in memory.
func (t *truths) checkResults(x *truth, steps []outcome.Step, inOutcome map[string]bool) {
	for i := range steps {
		st := &steps[i]
		t.checkResults(x, st.Steps, nil)
		for n := range st.Items {
			t.checkResults(x, st.Items[n].Steps, nil)
		}
		if st.Status != outcome.StepSucceeded || inOutcome[st.ID] || st.Reused || st.Answer != nil || st.Items != nil {
			continue
		}
		if st.Result == nil && st.Blob == nil {
			t.w.violate("D1", "%s succeeded, and the document of %s has no result", st.ID, x.id.ID)
			continue
		}
		if want := t.recordedValue(x, st); want != nil && st.Result != nil {
			t.w.stats["a result in a document compared with its record"]++
			if string(want) != string(st.Result) {
				t.w.violate("D1", "the document of %s has %s for %s, whose record has %s", x.id.ID, st.Result, st.ID, want)
			}
		}
	}
}

// recordedValue returns what the record of a call has that succeeded; nil where there is none in the ledger.
func (t *truths) recordedValue(x *truth, st *outcome.Step) []byte {
	shards := len(t.w.shards)
	for n := 40; n > 0; n-- {
		a := subjects.Attempt{Run: x.id, Generation: x.gen, Tool: st.Tool, Step: st.ID, Number: n}
		subject := subjects.StepRecord(a, shards)
		e := t.w.streamOf(subject).bySubj[subject]
		if e == nil {
			continue
		}
		w := wire.ParseResult(e.Header, e.Data)
		if w.Error != nil || w.Handle != nil || w.Asks != nil {
			return nil
		}
		value, _ := plan.Output(w.Body, w.Text)
		return value
	}
	return nil
}
