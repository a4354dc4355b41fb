package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// checkI5: a step was skipped if and only if a direct dependency that isn't optional did not succeed. A run that stops
// early cancels instead what had not become ready by then.
func (t *truths) checkI5(x *truth, doc *outcome.Run) {
	for i := range x.plan.Steps {
		spoiled, interrupted := false, false
		for _, d := range x.plan.Steps[i].Deps {
			if x.plan.Steps[d].Optional {
				continue
			}
			switch doc.Steps[d].Status {
			case outcome.StepFailed, outcome.StepSkipped:
				spoiled = true
			case outcome.StepCancelled:
				interrupted = true
			default: // it spoils nothing
			}
		}
		skipped := doc.Steps[i].Status == outcome.StepSkipped
		mayBeCancelled := (x.stopped || x.plan.OnFailure == plan.Stop || interrupted) && doc.Steps[i].Status == outcome.StepCancelled
		if skipped && !spoiled || spoiled && !skipped && !mayBeCancelled {
			t.w.violate("I5", "step %s of %s is %s", doc.Steps[i].ID, x.body, doc.Steps[i].Status)
		}
	}
}

// checkDocument checks I5 and I6 on the document of a run that is over.
func (t *truths) checkDocument(x *truth, doc *outcome.Run) {
	if doc.Status == outcome.Rejected {
		if x.start == nil || !x.start.Rejected() || len(x.out) > 0 {
			t.w.violate("I8", "%s was rejected and yet begun", x.id.ID)
		}
		return
	}
	if x.start == nil || x.start.Rejected() || x.plan == nil {
		t.w.violate("I8", "%s has an outcome and was never begun", x.id.ID)
		return
	}
	t.swayed[x.digest] = t.swayed[x.digest] || x.swayed()
	inOutcome := map[string]bool{}
	for _, res := range doc.Outcome.Results {
		inOutcome[res.Step] = true
	}
	t.checkResults(x, doc.Steps, inOutcome)
	if x.early { // whether two owners come to the same is looked at all the same
		t.w.stats["not compared"]++
		return
	}
	if x.agent {
		t.checkAgent(x, doc)
		return
	}
	if x.plan.Language > 1 {
		t.checkNotTaken(x, doc)
		t.checkI12(x, doc)
	} else {
		t.checkI5(x, doc)
	}
	if nested := t.nested[x.digest]; nested != nil {
		t.checkNested(x, doc, nested)
		return
	}
	if !x.reused {
		t.checkI6(x, doc)
		return
	}
	t.checkTakenOver(x, doc)
}

// checkTakenOver: an item that succeeded in the run that this one tries again is not executed again, if its list is the
// same. If not, nothing is taken over by its place.
func (t *truths) checkTakenOver(x *truth, doc *outcome.Run) {
	for i := range doc.Steps {
		st := &doc.Steps[i]
		from := x.start.Reuse.Items[st.ID]
		if from == nil || st.Ready.IsZero() { // nothing of it, or never reached
			continue
		}
		for k := range st.Items {
			_, want := from.Results[k]
			want = want && st.List == from.List
			if st.Items[k].Reused != want || want && len(x.out[st.Items[k].ID]) > 0 {
				t.w.violate("I7", "item %s of %s: taken over %t, its list is the same %t, sent %v", st.Items[k].ID, x.id.ID, st.Items[k].Reused, st.List == from.List, x.out[st.Items[k].ID])
			}
			if want {
				t.w.stats["an item taken over"]++
			}
		}
	}
}

// cutShort reports whether a for_each step failed with one of its items. What the others would have come to is cut off
// at a moment that is nobody's choice.
func (x *truth) cutShort() bool {
	for i := range x.plan.Steps {
		if _, failed := x.items(i); failed && x.plan.Steps[i].ForEach != nil {
			return true
		}
	}
	return false
}

// checkI6: the outcome is the one that the sequential interpreter comes to, from the records of the ledger and, where
// nothing but the tools had a say, from the tools alone.
func (t *truths) checkI6(x *truth, doc *outcome.Run) {
	t.endedAsked(x, doc)
	contracts := x.contracts()
	want, err := reference.RunStopped(x.text(), contracts, x.decided)
	if err != nil {
		t.w.violate("I6", "the records of %s are those of no run: %v\n%s", x.id.ID, err, x.body)
		return
	}
	if x.listOfOnce() || x.hinted {
		t.w.stats["not compared"]++
		return
	}
	if problem := differs(x, doc, want, false); problem != "" {
		t.w.violate("I6", "%s\n%s", problem, x.body)
		return
	}
	t.w.stats["compared with the records"]++
	if t.w.seed%2 > 0 || x.disturbed || x.stopped || x.plan.OnFailure == plan.Stop || x.once() || x.cutShort() {
		return
	}
	want, err = reference.Run(x.text(), contracts, t.behaviour(x))
	if err != nil {
		panic(err)
	}
	if problem := differs(x, doc, want, true); problem != "" {
		t.w.violate("I6", "alone with its tools: %s\n%s", problem, x.body)
	}
	t.w.stats["compared with the tools"]++
	if x.spoken != nil {
		t.w.stats["a plan in the state dialect compared with the tools"]++
	}
}

// contracts are the frozen ones, as the reference interpreter wants them.
func (x *truth) contracts() map[string]reference.Contract {
	contracts := map[string]reference.Contract{}
	for name, f := range x.start.Tools {
		contracts[name] = reference.Contract{
			MaxAttempts: f.Contract.MaxAttempts, PartialSuccess: f.Contract.ErrorPropagation == "partial-success", Approval: string(f.Contract.Approval), Asks: f.Contract.Asks,
		}
	}
	return contracts
}

// once reports whether an at_most_once tool was used, which the reference knows nothing of.
func (x *truth) once() bool {
	for s := range x.plan.All() {
		if x.contract(s).AtMostOnce {
			return true
		}
	}
	return false
}

// listOfOnce reports whether one was used for items, the errors of which references can see.
func (x *truth) listOfOnce() bool {
	return slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool { return s.ForEach != nil && x.contract(&s).AtMostOnce })
}

func differs(x *truth, doc *outcome.Run, want *reference.Result, calm bool) string {
	got := doc.Outcome
	if want.Status != string(got.Status) {
		return fmt.Sprintf("status %s, not %s", got.Status, want.Status)
	}
	for i := range doc.Steps {
		st, ref := &doc.Steps[i], want.Steps[doc.Steps[i].ID]
		if ref.Status != string(st.Status) {
			return fmt.Sprintf("step %s is %s, not %s", st.ID, st.Status, ref.Status)
		}
		if seen := x.args[st.ID]; seen != nil && ref.Arguments != nil && !sameJSON(seen, ref.Arguments) {
			return fmt.Sprintf("step %s was called with %s, not %s", st.ID, seen, ref.Arguments)
		}
		for n, item := range ref.Items {
			if seen := x.args[subjects.ItemToken(st.ID, n)]; seen != nil && item.Arguments != nil && !sameJSON(seen, item.Arguments) {
				return fmt.Sprintf("item %d of step %s was called with %s, not %s", n, st.ID, seen, item.Arguments)
			}
		}
	}
	if !slices.Equal(want.NotTaken, got.NotTaken) {
		return fmt.Sprintf("%v were not taken, not %v", got.NotTaken, want.NotTaken)
	}
	if len(want.Results) != len(got.Results) || len(want.Errors) != len(got.Errors) {
		return fmt.Sprintf("%d results and %d errors, not %d and %d", len(got.Results), len(got.Errors), len(want.Results), len(want.Errors))
	}
	if (want.Output == nil) != (got.Output == nil) || want.Output != nil && !sameJSON(want.Output, got.Output) {
		return fmt.Sprintf("the output is %s, not %s", got.Output, want.Output)
	}
	for i, r := range want.Results {
		value := got.Results[i].JSON
		if at, _ := x.plan.Index(r.Step); x.plan.Steps[at].ForEach != nil && string(value) != "null" {
			var envelope struct{ Results json.RawMessage }
			_ = json.Unmarshal(value, &envelope)
			value = envelope.Results
		}
		if r.Step != got.Results[i].Step || !sameJSON(r.JSON, value) {
			return fmt.Sprintf("the result of %s is %s, not %s", r.Step, got.Results[i].JSON, r.JSON)
		}
	}
	for i, e := range want.Errors {
		g := got.Errors[i]
		at, _ := x.plan.Index(e.Step)
		if calm && x.plan.Steps[at].ForEach != nil {
			e.Attempts = g.Attempts // of how many items were executed before one failed fast, the order decides
		}
		if e.Step != g.Step || e.Code != string(g.Code) || e.Attempts != g.Attempts || e.HandledBy != g.HandledBy {
			return fmt.Sprintf("the error of %s is %+v, not %+v", e.Step, g, e)
		}
	}
	return ""
}

// sameJSON compares by value, with the exact digits of numbers: text in templates may be escaped in several ways.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(b []byte) string {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return err.Error()
		}
		s, _ := json.Marshal(v)
		return string(s)
	}
	return read(a) == read(b)
}
