package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Of two orders one is in stock: one parcel is sent, and one customer is told.
func TestEachOrderGoesItsWay(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	out := w.Wait(w.Submit("plan.json", client.SubmitOptions{Run: "orders"}))
	exampletest.Check(t, out, "outcome.json")
	require.Equal(t, []string{"each=0/tell", "each=1/ship"}, out.NotTaken)
	require.Equal(t, 1, w.Meter.Of("ship").Calls)
	require.Equal(t, 1, w.Meter.Of("mail").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
