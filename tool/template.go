package tool

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
)

// A template is a tool that is a plan: where others have workers, it has steps. It is registered, listed and called like
// any tool. What its plan may hold says package plan, which refuses it by these errors.

// PlanRefusal is the error of a template whose plan has problems, with places in its definition: an invalid_tool. Its
// details list them, so that they survive on the wire; Told takes them from there.
func PlanRefusal(name string, problems []fault.Problem) *fault.Error {
	l := Flaws(problems)
	if n := len(l) - MaxFlaws; n > 0 {
		l = append(slices.Clone(l[:MaxFlaws]), more(n))
	}
	err := l.fault("tool " + quoted(clip(name)) + ": " + l.Error())
	err.Details, _ = json.Marshal(refusedPlan{l}) // of strings and numbers alone
	return err
}

type refusedPlan struct {
	Problems Flaws `json:"problems"`
}

// Told gives an error that PlanRefusal made, and that was sent, the flaws that its details list as its cause.
func Told(err error) error {
	f, in := fault.As(err), refusedPlan{}
	if err == nil || f.Code != fault.InvalidTool || json.Unmarshal(f.Details, &in) != nil || len(in.Problems) == 0 {
		return err
	}
	told := *f
	told.Details, told.Cause = nil, in.Problems
	return &told
}

// OutputRefusal is the error of a template whose plan came to what its output schema does not allow: a tool_terminal
// that says where.
func OutputRefusal(name string, bad []Violation) *fault.Error {
	place := bad[0].Pointer
	if place == "" {
		place = "the output"
	}
	return fault.New(fault.ToolTerminal, "the plan of %s came to what its output schema does not allow: %s: %s", name, place, bad[0].Message).
		WithHint("mend the output of its plan, or its output schema, and apply it again")
}
