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

// TestWhatWasDecidedWithinAStepIsShown: in plans of steps, iterations, items, and in the rounds of an agent.
func TestWhatWasDecidedWithinAStepIsShown(t *testing.T) {
	t.Parallel()
	by := func(who string) *outcome.Answered {
		return &outcome.Answered{Decision: outcome.DecisionApproved, By: who, Verified: true}
	}
	doc := &outcome.Run{Steps: []outcome.Step{
		{ID: "p", Steps: []outcome.Step{{ID: "p/q", Tool: "pay", Answer: by("ann")}}},
		{ID: "l", Steps: []outcome.Step{{ID: "l/=1", Tool: "pay", Answer: by("bob")}}},
		{ID: "e", Items: []outcome.Step{{ID: "e=0", Steps: []outcome.Step{{ID: "e=0/x", Tool: "pay", Answer: by("eve")}}}}},
		{ID: "ag", Tool: "helper", Answers: []*outcome.Answered{by("gus")}, Steps: []outcome.Step{
			{ID: "ag/=0/=plan", Tool: "model", Answer: by("cid")},
			{ID: "ag/=0/x", Tool: "pay", Answer: by("dan"), Answers: []*outcome.Answered{by("fay")}},
			{ID: "ag/=0/sub", Steps: []outcome.Step{{ID: "ag/=0/sub/=0/y", Tool: "pay", Answer: by("hal")}}},
		}},
	}}
	for items, of := range map[bool]string{false: "items: 1 approved", true: "approved by eve"} {
		var b bytes.Buffer
		writeAnswers(&b, style{}, doc, items, 0)
		var got []string
		for line := range strings.Lines(b.String()) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
		where := "e"
		if items {
			where = "e=0/x"
		}
		require.Equal(t, []string{
			"", "p/q approved by ann", "l/=1 approved by bob", where + " " + of, "ag approved by gus", "ag/=0 approved by cid",
			"ag/=0/x approved by dan", "ag/=0/x approved by fay", "ag/=0/sub/=0/y approved by hal",
		}, got)
	}
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
