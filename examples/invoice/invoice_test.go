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

// Three tools are called, once each; everything else is calculated, and exactly: 3 x 0.1 is 0.3.
func TestTheInvoiceIsAddedUp(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "invoice"}))
	require.Equal(t, outcome.Succeeded, out.Status)
	exampletest.Check(t, out, "outcome.json")
	for _, name := range []string{"get_order", "get_tax_rate", "send_invoice"} {
		require.Equal(t, 1, w.Meter.Of(name).Calls, name)
	}
}

// Tried again from the order on, the values are derived from what it is then.
func TestARetryAddsUpAnew(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	first := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "invoice"}))
	r, err := w.Client.Retry(exampletest.Context(t), "invoice", client.RetryOptions{From: "send"})
	require.NoError(t, err)
	again := w.Wait(r)
	require.Equal(t, first.Results, again.Results)
	require.Equal(t, 1, w.Meter.Of("get_order").Calls)
	require.Equal(t, 2, w.Meter.Of("send_invoice").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
