package tool

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// mostRefused is the most violations that a refusal names.
const mostRefused = 5

// Refusal is the error of a call whose resolved arguments break the input schema of its tool in these ways: an
// invalid_arguments that says where, and what would fit.
func Refusal(name string, bad []Violation) *fault.Error {
	err := fault.New(fault.InvalidArguments, "the resolved arguments don't fit the input schema of %s:", name)
	var ways []string
	for _, v := range bad[:min(len(bad), mostRefused)] {
		ways = append(ways, placeOf(v)+": "+v.Message)
	}
	if len(bad) > mostRefused {
		ways = append(ways, "…")
	}
	err.Message += " " + strings.Join(ways, "; ")
	hint := "a referenced result has another form than the tool expects; refer to the field that fits, " +
		"or convert it with a step between"
	if i := slices.IndexFunc(bad, func(v Violation) bool { return v.Hint != "" }); i >= 0 {
		hint = "what would fit at " + placeOf(bad[i]) + ": " + bad[i].Hint + "; " + hint
	}
	return err.WithHint("%s", hint)
}

func placeOf(v Violation) string {
	if v.Pointer == "" {
		return "the arguments"
	}
	return v.Pointer
}
