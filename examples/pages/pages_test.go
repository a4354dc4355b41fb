package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Three pages are read, one after the other.
func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "pages"}))
	exampletest.Check(t, out, "outcome.json")
	require.Equal(t, 3, w.Meter.Of("list_customers").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
