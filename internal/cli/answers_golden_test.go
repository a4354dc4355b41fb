package cli

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// answeredRun is one in which people said something of everything.
func answeredRun() *outcome.Run {
	at := noon.Add(-time.Minute)
	said := func(decision, by string) *outcome.Answered {
		return &outcome.Answered{Decision: decision, By: by, At: at}
	}
	r := &outcome.Run{
		Version: 1, Run: "order-42", Tenant: "default", Digest: "0123", Status: outcome.Partial, Submitted: noon.Add(-time.Hour), Finished: noon,
		Approval: &outcome.Answered{Decision: outcome.DecisionApproved, By: "approvers/UABC", Verified: true, At: at},
		Stats:    outcome.Stats{Steps: 5, Succeeded: 3, Failed: 2, ElapsedMS: 3_600_000},
		Outcome:  &outcome.Outcome{Run: "order-42", Status: outcome.Partial},
		Steps: []outcome.Step{
			{ID: "pay", Tool: "charge", Status: outcome.StepSucceeded, Attempts: 1, Worker: "w-1", Answer: said(outcome.DecisionApproved, "ann")},
			{ID: "gift", Tool: "charge", Status: outcome.StepFailed, Answer: said(outcome.DecisionRejected, "bob\x1b[2J"), Error: fault.New(fault.Rejected, "Rejected by bob (unverified): too much")},
			{ID: "late", Tool: "charge", Status: outcome.StepFailed, Answer: said(outcome.DecisionExpired, ""), Error: fault.New(fault.Rejected, "nobody answered within 1h0m0s")},
			{ID: "who", Tool: "ask", Status: outcome.StepSucceeded, Answer: said(outcome.DecisionAnswered, "ann"), Result: json.RawMessage(`"Ada"`)},
			{ID: "send", Tool: "ship", Status: outcome.StepSucceeded},
		},
	}
	r.Steps[0].Answer.Arguments, r.Steps[0].Arguments = json.RawMessage(`{"amount":40}`), json.RawMessage(`{"amount":40}`)
	r.Steps[0].Answer.Reason, r.Steps[1].Answer.Reason = "the rest is a credit note", "too much"
	for i, decision := range []string{outcome.DecisionApproved, outcome.DecisionApproved, outcome.DecisionRejected} {
		r.Steps[4].Items = append(r.Steps[4].Items, outcome.Step{ID: fmt.Sprint("send=", i), Tool: "ship", Status: outcome.StepSucceeded, Answer: said(decision, "ann")})
	}
	return r
}

// Who reads what became of a run sees who answered, when, what, why, and whether that is the server's word.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	a, out, _ := paper("text")
	doc := answeredRun()
	require.NoError(t, a.showRun(doc, false))
	fmt.Fprintln(out, "----")
	require.NoError(t, a.showRun(doc, true))
	for _, id := range []string{"pay", "gift", "late", "who", "send", "send=2"} {
		fmt.Fprintln(out, "----")
		require.NoError(t, a.writeStep(out, accountOf(doc), findStep(doc, id)))
	}
	golden(t, "answers", out.String())
	require.NotContains(t, out.String(), "\x1b")
	for _, part := range []string{"by ann (unverified)", "by approvers/UABC at ", "too much", "expired at ", "2 approved, 1 rejected"} {
		require.Contains(t, out.String(), part)
	}
}

// Who looks at a run whose plan was approved sees what became of its amendments, and what one that waits would change.
func TestGoldenApprovedAmendments(t *testing.T) {
	t.Parallel()
	a, out, _ := paper("text")
	at := noon.Add(-time.Minute)
	doc := &outcome.Run{
		Version: 1, Run: "order-42", Tenant: "default", Digest: "0123", Status: outcome.Running, Submitted: noon.Add(-time.Hour), Revision: 2,
		Amendments: []outcome.Amendment{
			{Step: "=", Revision: 1, By: "bot\x1b[2J", At: at, Answer: &outcome.Answered{Decision: outcome.DecisionApproved, By: "ann", At: at}},
			{Step: "=", Revision: 2, By: "bot", At: at, Answer: &outcome.Answered{Decision: outcome.DecisionRejected, By: "ann", At: at}, Error: fault.New(fault.Rejected, "Rejected by ann (unverified)")},
			{Step: "day=2/plan", Revision: 1, By: "ann", At: at},
			{Step: "=", Revision: 3, At: at, Waits: true},
		},
		Stats: outcome.Stats{Steps: 5, Succeeded: 3},
	}
	require.NoError(t, a.showRun(doc, false))
	q := &outcome.Question{
		Run: "order-42", Tenant: "default", Step: "=", Number: 4, Kind: outcome.Approval, Text: "May this run?", Revision: 3, By: "bot", Reason: "it rains",
		Change: json.RawMessage(`{"discard":["walk"],"add":[{"id":"read","tool":"read"}]}`), Digest: "ab12", Since: at,
	}
	fmt.Fprintln(out, "----")
	require.NoError(t, asking{a}.showQuestions([]*outcome.Question{q}))
	fmt.Fprintln(out, "----")
	require.NoError(t, asking{a}.writeQuestion(q))
	golden(t, "amendments", out.String())
	require.NotContains(t, out.String(), "\x1b")
}
