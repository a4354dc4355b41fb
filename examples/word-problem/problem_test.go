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

// One tool is called, and only where there is change: values decide that too, and what needs a step that was not taken
// is not taken either.
func TestTheProblemIsSolved(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	for _, name := range []string{"", "-broke"} {
		out := w.Wait(w.Submit("plan"+name+".json", client.SubmitOptions{Run: "problem" + name}))
		require.Equal(t, outcome.Succeeded, out.Status)
		exampletest.Check(t, out, "outcome"+name+".json")
	}
	require.Equal(t, 1, w.Meter.Of("get_exchange_rate").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
