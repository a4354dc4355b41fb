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

// One of the two ways is taken, by what was written to the state; the other one calls nobody.
func TestTheWeatherDecides(t *testing.T) {
	t.Parallel()
	w := exampletest.Start(t, exampletest.Options{Host: host, Tools: exampletest.ReadTools(t, definitions)})
	for name, other := range map[string]string{"": "find_movie", "-rain": "find_park"} {
		before := w.Meter.Of(other).Calls
		out := w.Wait(w.Submit("plan"+name+".json", client.SubmitOptions{Run: "outing" + name}))
		require.Equal(t, outcome.Succeeded, out.Status)
		require.Equal(t, []string{other}, out.NotTaken)
		exampletest.Check(t, out, "outcome"+name+".json")
		require.Equal(t, before, w.Meter.Of(other).Calls)
	}
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
