package outcome_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

func ExampleOutcome_ForModel() {
	o := &outcome.Outcome{
		Run: "order-42", Status: outcome.Rejected, Results: outcome.Results{}, Errors: []outcome.StepError{},
		Problems: []fault.Problem{{Code: fault.UnknownTool, Path: "/steps/0/tool", Step: "a", Message: `there is no tool "multiplication"`, Hint: `did you mean "multiply"?`}},
	}
	fmt.Println(string(o.ForModel()))
	// Output: {"run":"order-42","status":"rejected","problems":[{"code":"unknown_tool","path":"/steps/0/tool","step":"a","message":"there is no tool \"multiplication\"","hint":"did you mean \"multiply\"?"}]}
}

func TestForModelHasNothingEmptyAndNoCounts(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"run":"order-42 \"é\"","status":"partial","results":{"z":{ "n": 12345678901234567890, "h": "<b>" },"a":1.0},`+
		`"errors":[{"step":"s1","code":"tool_failed","message":"a < b","attempts":3}]}`, string(sample().ForModel()))
	require.Equal(t, `{"run":"r","status":"succeeded"}`, string((&outcome.Outcome{Run: "r", Status: outcome.Succeeded}).ForModel()))
}

// What a model is told of a thousand different problems fits its context, and it knows how many more there are.
func TestForModelIsBounded(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{"short": "m", "long": strings.Repeat("é", 300), "over the bound": strings.Repeat("x", 20_000)} {
		o := &outcome.Outcome{Run: strings.Repeat("r", 128), Status: outcome.Rejected}
		for i := range 1000 {
			p := fault.Problem{Code: fault.UnknownRef, Path: "/steps/" + fmt.Sprint(i), Message: message + fmt.Sprint(i)}
			if i%10 == 0 {
				p.Again("/steps/x")
			}
			o.Problems = append(o.Problems, p)
			o.Warnings = append(o.Warnings, p)
			o.Errors = append(o.Errors, outcome.StepError{Step: "s", Code: fault.Skipped, Message: message})
		}
		check := func(o *outcome.Outcome, what string, all int) {
			b := o.ForModel()
			require.LessOrEqual(t, len(b), outcome.MaxForModel, name)
			var got map[string]any
			require.NoError(t, json.Unmarshal(b, &got), name)
			var listed struct {
				Problems []fault.Problem
				Errors   []outcome.StepError
			}
			require.NoError(t, json.Unmarshal(b, &listed))
			n := len(listed.Errors)
			for _, p := range listed.Problems {
				n += p.Places()
			}
			left, _ := got[what+"_left_out"].(float64)
			require.Equal(t, all, n+int(left), name)
			require.NotZero(t, left, name)
		}
		errors := o.Errors
		o.Errors = nil
		check(o, "problems", 1100)
		check(&outcome.Outcome{Run: "r", Status: outcome.Failed, Errors: errors}, "errors", 1000)
	}
}
