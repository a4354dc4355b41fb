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

func world(t *testing.T) *exampletest.World {
	t.Helper()
	defs := exampletest.ReadTools(t, definitions)
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: defs})
	require.NoError(t, apply(exampletest.Context(t), w.Client, defs))
	return w
}

// Another plan calls the template as any tool, once for each complaint; a run may be one call of it.
func TestAPlanCallsIt(t *testing.T) {
	t.Parallel()
	w := world(t)
	for _, name := range []string{"", "-alone"} {
		out := w.Wait(w.Submit("plan"+name+".json", client.SubmitOptions{Run: "refund" + name}))
		require.Equal(t, outcome.Succeeded, out.Status)
		exampletest.Check(t, out, "outcome"+name+".json")
	}
	require.Equal(t, 3, w.Meter.Of("issue_refund").Calls)
	require.Equal(t, 1, w.Meter.Of("escalate").Calls)
}

// What its input schema refuses fails the step that calls it, before anything in it begins.
func TestItsInputIsChecked(t *testing.T) {
	t.Parallel()
	w := world(t)
	out := w.Wait(w.Submit("plan-refused.json", client.SubmitOptions{Run: "refused"}))
	require.Equal(t, outcome.Partial, out.Status)
	exampletest.Check(t, out, "outcome-refused.json")
	require.Zero(t, w.Meter.Of("check_billing_history").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
