package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The export is looked at three times, and then loaded.
func TestItIsAskedUntilItIsReady(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: newExports().host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "poll"}))
	exampletest.Check(t, out, "outcome.json")
	require.Equal(t, 3, w.Meter.Of("export_status").Calls)
	require.Equal(t, 1, w.Meter.Of("load").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
