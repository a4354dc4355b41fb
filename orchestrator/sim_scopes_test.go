package orchestrator

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// In some worlds steps have plans of their own. All that is checked of any run is checked there as well, by tokens, and
// the end is compared with that of the reference, for which a composite is a tool that runs a plan.

// nests is whether this is such a world.
func (w *world) nests() bool { return w.seed%7 == 5 }

// newNested makes up a plan with plans within it.
func (w *world) newNested() []byte {
	tools := reference.NestedTools{Echo: simTools[0], Flaky: simTools[1], Broken: simTools[2], Text: simTools[3]}
	nested := reference.GenerateNested(rand.New(rand.NewSource(w.Int63())), tools, w.chance(3))
	body := nested.Plan
	if w.chance(5) {
		body = []byte(`{"timeout":"` + pickOne(w, "300ms", "2s") + `",` + string(body[1:]))
	}
	if w.chance(4) {
		body = []byte(strings.ReplaceAll(string(body), `"plan":`, `"timeout":"`+pickOne(w, "30ms", "1s")+`","plan":`))
	}
	body = w.withTemplates(body)
	w.truths.nested[plan.Digest(body)] = nested
	return w.inParts(body, nested)
}

// eachStep calls f with the steps of a document and with all that they are made of.
func eachStep(steps []outcome.Step, f func(*outcome.Step)) {
	for i := range steps {
		f(&steps[i])
		eachStep(steps[i].Items, f)
		eachStep(steps[i].Steps, f)
	}
}

// comesTo reports whether a plan says what it comes to, or has a composite of such a token.
func (x *truth) comesTo(token string) bool {
	if x.plan == nil || token == subjects.RootScope {
		return x.plan != nil && (x.plan.Output != nil || x.amendments != nil)
	}
	s, _, ok := x.plan.Find(token)
	return ok && s.Plan != nil
}

// swayed reports whether something besides the tools had a say in a run.
func (x *truth) swayed() bool { return x.disturbed || x.stopped || x.early || x.once() }

// checkNested compares the end of a run with that of the reference, where nothing but the tools had a say. Of all others
// it sees that everything came to an end.
func (t *truths) checkNested(x *truth, doc *outcome.Run, nested *reference.Nested) {
	account, whole := map[string]string{}, []string{}
	eachStep(doc.Steps, func(st *outcome.Step) {
		if st.Reused {
			whole = append(whole, st.ID+"/", st.ID+"=")
		}
		if account[st.ID] = string(st.Status); st.Error != nil {
			account[st.ID] += " " + string(st.Error.Code)
		}
		if !st.Status.Terminal() {
			t.w.violate("I1", "the run is over, and %s is %s", st.ID, st.Status)
		}
	})
	t.w.stats["a run with plans within it"]++
	if x.reused && (t.w.seed%4 == 3 || t.swayed[x.digest]) { // what it takes over may be forged, or no tool's
		return
	}
	if x.reused && t.otherContracts(x) {
		return
	}
	if x.swayed() || x.hinted || x.amendments != nil && x.amendments.givenUp || strings.Contains(string(nested.Plan), `"on_failure":"stop"`) {
		return
	}
	all, err := nested.Run(x.contracts())
	if err != nil {
		panic(err)
	}
	for token := range all { // what was taken over as a whole has no account of its own
		if slices.ContainsFunc(whole, func(prefix string) bool { return strings.HasPrefix(token, prefix) }) {
			delete(all, token)
		}
	}
	if problem := reference.Differ(account, all); problem != "" {
		t.w.violate("I6", "alone with its tools: %s\n%s", problem, x.body)
	}
	if problem := differsAbove(doc.Outcome, all[""]); problem != "" {
		t.w.violate("I6", "alone with its tools: %s\n%s", problem, x.body)
	}
	for token, res := range all {
		for id, s := range res.Steps {
			if seen := x.args[token+id]; seen != nil && s.Arguments != nil && !sameJSON(seen, s.Arguments) {
				t.w.violate("I6", "step %s%s was called with %s, not %s\n%s", token, id, seen, s.Arguments, x.body)
			}
		}
	}
	t.w.stats["a run with plans within it compared with the tools"]++
	if x.amendments != nil {
		t.w.stats["a run whose plan came in parts compared with the whole"]++
	}
}

// otherContracts reports whether a run takes results over from one that had other contracts, or took them over from such a
// one itself: with fewer attempts, what succeeded there would fail here.
func (t *truths) otherContracts(x *truth) bool {
	from := x
	for range t.order { // ids are used again, so there may be circles
		if from.start.Reuse == nil {
			return false
		}
		at := slices.IndexFunc(t.order, func(y *truth) bool { return y.id.ID == from.start.Reuse.Of && y.start != nil && y != from })
		if at < 0 {
			return false
		}
		if from = t.order[at]; !reflect.DeepEqual(from.contracts(), x.contracts()) {
			return true
		}
	}
	return false
}

// differsAbove compares what a run came to.
func differsAbove(got *outcome.Outcome, want *reference.Result) string {
	switch {
	case want.Status != string(got.Status):
		return fmt.Sprintf("status %s, not %s", got.Status, want.Status)
	case (want.Output == nil) != (got.Output == nil) || want.Output != nil && !sameJSON(want.Output, got.Output):
		return fmt.Sprintf("the output is %s, not %s", got.Output, want.Output)
	case len(want.Results) != len(got.Results):
		return fmt.Sprintf("%d results, not %d", len(got.Results), len(want.Results))
	}
	for i, r := range want.Results {
		value := got.Results[i].JSON
		var list struct{ Results json.RawMessage }
		if json.Unmarshal(value, &list) == nil && list.Results != nil {
			value = list.Results
		}
		if r.Step != got.Results[i].Step || !sameJSON(r.JSON, value) {
			return fmt.Sprintf("the result of %s is %s, not %s", r.Step, got.Results[i].JSON, r.JSON)
		}
	}
	return ""
}
