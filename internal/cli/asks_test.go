package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// What a tool asked in the middle of its call stands in the account of its step: which attempts ended so, and who said what.
func TestTheAccountOfAToolThatAsked(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	said := &outcome.Answered{Decision: outcome.DecisionAnswered, By: "ann", At: at}
	step := outcome.Step{
		ID: "s", Tool: "book", Status: outcome.StepSucceeded, Attempts: 2, Answers: []*outcome.Answered{said},
		Tries: []outcome.Try{{Attempt: 1, Worker: "w", Asked: true}, {Attempt: 2, Worker: "w"}},
	}
	var b bytes.Buffer
	writeTries(&b, style{}, step.Tries)
	require.Contains(t, b.String(), "asked a person")
	b.Reset()
	writeAnswers(&b, style{}, &outcome.Run{Steps: []outcome.Step{step}}, true, 0)
	require.Contains(t, b.String(), "answered by ann")
	require.NotContains(t, b.String(), "in place of the tool")
	require.Equal(t, "1 answered", countAnswers([]outcome.Step{step}))
}
