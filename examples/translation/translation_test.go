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

// All places of the state come back, filled.
func TestTheStateIsFilled(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "translation"}))
	require.Equal(t, outcome.Succeeded, out.Status)
	exampletest.Check(t, out, "outcome.json")
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}

// Who mistakes a place is told which one is meant, before anything runs.
func TestSlipsAreFoundByTheSchema(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	exampletest.Check(t, w.Run("plan-bad.json", client.SubmitOptions{Run: "translation-bad"}), "outcome-bad.json")
	require.Empty(t, w.Meter.Lines(), "nothing of a refused plan runs")
}
