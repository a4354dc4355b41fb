package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The plan deals with the card that is declined: the run succeeds, and its outcome says by which step. Where the
// payment goes through, nothing is reported.
func TestTheFailureIsDealtWith(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	for _, name := range []string{"", "-paid", "-calls"} {
		out := w.Wait(w.Submit("plan"+name+".json", client.SubmitOptions{Run: "refund" + name}))
		require.Equal(t, outcome.Succeeded, out.Status)
		exampletest.Check(t, out, "outcome"+name+".json")
	}
	require.Equal(t, 3, w.Meter.Of("process_payment").Calls, "a declined card is not charged again")
	require.Equal(t, 2, w.Meter.Of("report_failure").Calls)
}

// Tried again, the payment is made anew, and with it all that followed from its failure.
func TestARetryPaysAgain(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "refund"}))
	r, err := w.Client.Retry(exampletest.Context(t), "refund", client.RetryOptions{})
	require.NoError(t, err)
	out := w.Wait(r)
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, 2, w.Meter.Of("process_payment").Calls)
	require.Equal(t, 2, w.Meter.Of("report_failure").Calls, "it is about the new failure")

	w.Wait(w.Submit("plan-paid.json", client.SubmitOptions{Run: "paid"}))
	_, err = w.Client.Retry(exampletest.Context(t), "paid", client.RetryOptions{})
	require.ErrorContains(t, err, "nothing to try again")
	r, err = w.Client.Retry(exampletest.Context(t), "paid", client.RetryOptions{From: "confirm"})
	require.NoError(t, err)
	out = w.Wait(r)
	require.Equal(t, []string{"another_card", "report"}, out.NotTaken)
	require.Equal(t, 3, w.Meter.Of("process_payment").Calls, "its receipt is taken over")
	require.Equal(t, 2, w.Meter.Of("confirm_order").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
