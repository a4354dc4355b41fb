package outcome_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// TestAHeadNamesAFewTools: each once, in the order of the steps and what is within them, and not many.
func TestAHeadNamesAFewTools(t *testing.T) {
	t.Parallel()
	r := &outcome.Run{Status: outcome.Partial, Generation: 3, Steps: []outcome.Step{
		{ID: "a", Tool: "x"}, {ID: "v"}, {ID: "b", Tool: "x"},
		{ID: "c", Items: []outcome.Step{{ID: "c=0", Steps: []outcome.Step{{ID: "c=0/d", Tool: "y"}}}}},
	}}
	require.Equal(t, outcome.Head{Status: outcome.Partial, Generation: 3, Tools: []string{"x", "y"}}, outcome.HeadOf(r))
	r.RetryOf = "r0"
	r.Outcome = &outcome.Outcome{Errors: []outcome.StepError{{Step: "x"}}} // of a document whose steps lie elsewhere
	require.Equal(t, "x", outcome.HeadOf(r).Failed)
	require.Equal(t, "r0", outcome.HeadOf(r).RetryOf)
	r.Steps[3].Items[0].Steps[0].Status, r.Steps[3].Status = outcome.StepFailed, outcome.StepFailed
	require.Equal(t, "c=0/d", outcome.HeadOf(r).Failed, "the one within, for which the other failed")
	for i := range 20 {
		r.Steps = append(r.Steps, outcome.Step{Tool: fmt.Sprint("t", i)})
	}
	got := outcome.HeadOf(r).Tools
	require.Len(t, got, outcome.HeadTools)
	require.Equal(t, "t13", got[15])
}
