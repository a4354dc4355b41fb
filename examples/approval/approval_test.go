package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/outcome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Nothing is paid before somebody approves, and then what was approved of.
func TestLessIsPaidThanWasAskedFor(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	w.Submit("plan.json", client.SubmitOptions{Run: "refund"})
	out, err := approveAll(exampletest.Context(t), w.Client, "refund", func(q *outcome.Question) json.RawMessage {
		require.Equal(t, "Refund 50 EUR to ann?", q.Text)
		require.JSONEq(t, `{"order": "order-42", "amount": 50}`, string(q.Arguments))
		require.Zero(t, w.Meter.Of("process_refund").Calls)
		return json.RawMessage(`{"order": "order-42", "amount": 40}`)
	})
	require.NoError(t, err)
	exampletest.Check(t, out, "outcome.json")
	require.Equal(t, 1, w.Meter.Of("process_refund").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
