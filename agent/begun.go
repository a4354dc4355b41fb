package agent

import (
	"encoding/json"
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// Begun reads steps that a planner has handed over before its answer was whole, as an answer of nothing but these.
func Begun(steps []json.RawMessage, f *Facts, earlier [][]string) (*Answer, plan.Report) {
	var doc objectWriter
	doc.add("steps", arrayOf(steps))
	return Read(doc.json(), f, earlier)
}

// WithBegun returns an answer with the steps that had begun before it was whole: those that it has too are the same steps, and
// those that it lacks stand behind its own, as though it had them. lacked are the ids of these. The report says which of its
// steps have the id of one that had begun and are others; the answer is nil then.
func (a *Answer) WithBegun(begun []json.RawMessage, f *Facts, earlier [][]string) (b *Answer, lacked map[string]bool, report plan.Report) {
	own := map[string]json.RawMessage{}
	place := map[string]int{}
	if a.Fragment != nil {
		_, members := value{raw: plan.Compiled(a.Fragment)}.members()
		for i, v := range members["steps"].items() {
			own[idOf(v.raw)], place[idOf(v.raw)] = v.raw, i
		}
	}
	lacked = map[string]bool{}
	var missing []json.RawMessage
	for _, step := range begun {
		id := idOf(step)
		same, there := own[id]
		switch {
		case !there:
			missing, lacked[id] = append(missing, step), true
		case !SameStep(same, step):
			report.Problems = append(report.Problems, fault.Problem{
				Code: fault.DuplicateStep, Path: fmt.Sprintf("/steps/%d", place[id]), Step: id,
				Message: fmt.Sprintf("the step %q had begun while the answer was written, and is another one there", id),
				Hint:    fmt.Sprintf("give what is to be done besides an id of its own, as in %q; what had begun stays", id+"_2"),
			})
		}
	}
	switch {
	case len(report.Problems) > 0:
		return nil, nil, report
	case len(missing) == 0:
		return a, lacked, report
	case a.Fragment != nil:
		b, _, report = a.Amend(missing, func(string) bool { return false }, f, earlier)
		return b, lacked, report
	}
	b, report = Begun(missing, f, earlier)
	if b != nil {
		b.Dialect, b.Text, b.Output, b.End, b.Usage, b.Provider, b.Repaired = a.Dialect, a.Text, a.Output, a.End, a.Usage, a.Provider, a.Repaired
	}
	return b, lacked, report
}

// SameStep reports whether two steps, as they stand in a plan, are one and the same, however they are written.
func SameStep(a, b json.RawMessage) bool { return same("", a) == same("", b) }

// StepID returns the id of a step as it stands in a plan; empty for what has none.
func StepID(step json.RawMessage) string { return idOf(step) }

// Steps returns the steps of an answer, as its fragment has them, in their order: its own, and behind them those that stand for
// earlier rounds.
func (a *Answer) Steps() (steps []json.RawMessage) {
	if a.Fragment == nil {
		return nil
	}
	_, members := value{raw: plan.Compiled(a.Fragment)}.members()
	for _, v := range members["steps"].items() {
		steps = append(steps, v.raw)
	}
	return steps
}
