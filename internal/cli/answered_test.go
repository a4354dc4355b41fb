package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// TestWhatAPersonDecidedIsShown: who, when and why, and that a value or arguments are theirs.
func TestWhatAPersonDecidedIsShown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	doc := &outcome.Run{
		Approval: &outcome.Answered{Decision: outcome.DecisionApproved, By: "acme/UANN", Verified: true, At: at},
		Steps: []outcome.Step{
			{ID: "pay", Tool: "pay", Answer: &outcome.Answered{Decision: outcome.DecisionApproved, By: "ann", Reason: "half is enough", Arguments: []byte(`{}`), At: at}},
			{ID: "send", Tool: "send", Answer: &outcome.Answered{Decision: outcome.DecisionAnswered, By: "bob", At: at}},
			{ID: "all", Tool: "echo", Items: []outcome.Step{{ID: "all=2", Answer: &outcome.Answered{Decision: outcome.DecisionExpired, At: at}}}},
		},
	}
	var b bytes.Buffer
	writeAnswers(&b, style{}, doc, true, 0)
	require.Equal(t, []string{
		"", "the plan  approved by acme/UANN at 2026-01-02T03:04:05Z",
		"pay       approved by ann (unverified) at 2026-01-02T03:04:05Z, with other arguments: half is enough",
		"send      answered by bob (unverified) at 2026-01-02T03:04:05Z, in place of the tool",
		"all=2     expired at 2026-01-02T03:04:05Z", "",
	}, strings.Split(b.String(), "\n"))
	b.Reset()
	writeAnswered(&b, doc.Steps[0].Answer, "pay")
	writeAnswered(&b, doc.Steps[1].Answer, "send")
	require.Contains(t, b.String(), "reason: half is enough\ncalled with the arguments of who approved")
	require.Contains(t, b.String(), "send was not called")
}

// TestAQuestionIsToldWithTheCommandThatAnswersIt, and in bounds.
func TestAQuestionIsToldWithTheCommandThatAnswersIt(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := &lines{w: &b}
	l.event(client.Event{Kind: subjects.EventQuestion, Run: "order-42", Step: "pay", Waiting: strings.Repeat("x", 9000)})
	require.Contains(t, b.String(), "(to answer: stepjet questions show order-42 pay)")
	require.Less(t, b.Len(), 400)
	require.Less(t, len(clipLine(strings.Repeat("x", 9000))), 250)
	b.Reset()
	a := asking{&app{stdout: &b}}
	require.NoError(t, a.writeQuestion(&outcome.Question{Run: "r", Step: "=", Kind: outcome.Approval}))
	require.Contains(t, b.String(), "stepjet graph r")
	require.Contains(t, b.String(), "stepjet approve r =, or stepjet reject r =")
}

// TestTheApprovalOfAContractIsShown.
func TestTheApprovalOfAContractIsShown(t *testing.T) {
	t.Parallel()
	require.Contains(t, terms(&tool.Contract{Approval: "$args.amount > 100"}, nil), part{"approval", "$args.amount > 100"})
	require.Contains(t, terms(&tool.Contract{}, nil), part{"approval", "none"})
}
