package outcome_test

import (
	"fmt"
	"testing"
	"time"

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
	require.Empty(t, outcome.HeadOf(r).Doing, "it is over")
	for i := range 20 {
		r.Steps = append(r.Steps, outcome.Step{Tool: fmt.Sprint("t", i)})
	}
	got := outcome.HeadOf(r).Tools
	require.Len(t, got, outcome.HeadTools)
	require.Equal(t, "t13", got[15])
}

// TestAHeadNamesWhatIsAtWork: of a run that goes on, the first step that waits for no person and no other step.
func TestAHeadNamesWhatIsAtWork(t *testing.T) {
	t.Parallel()
	since := time.Unix(7, 0).UTC()
	r := &outcome.Run{Status: outcome.Running, Steps: []outcome.Step{
		{ID: "a", Status: outcome.StepSucceeded}, {ID: "b", Status: outcome.StepAsking}, {ID: "c", Status: outcome.StepWaiting},
	}}
	require.Empty(t, outcome.HeadOf(r).Doing)
	for _, status := range []outcome.StepStatus{outcome.StepReady, outcome.StepRunning, outcome.StepRetrying} {
		r.Steps = append(r.Steps[:3], outcome.Step{ID: "d", Status: status, Ready: since}, outcome.Step{ID: "e", Status: outcome.StepRunning})
		h := outcome.HeadOf(r)
		require.Equal(t, "d", h.Doing, status)
		require.Equal(t, since, h.Since, status)
	}
}
