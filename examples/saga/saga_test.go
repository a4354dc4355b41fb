package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What was booked before something failed is cancelled, the last first, and nothing stays booked.
func TestWhatWasBookedIsCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ booked, journal []string }{
		"":       {nil, []string{"book flight-Berlin", "book hotel-Berlin", "cancel hotel-Berlin: No car in Berlin on 2026-11-28.", "cancel flight-Berlin: No car in Berlin on 2026-11-28."}},
		"-hotel": {nil, []string{"book flight-Hamburg", "cancel flight-Hamburg: No room in Hamburg on 2026-11-28."}},
		"-well":  {[]string{"flight-Lisbon", "hotel-Lisbon", "car-Lisbon"}, []string{"book flight-Lisbon", "book hotel-Lisbon", "book car-Lisbon"}},
	} {
		t.Run("plan"+name, func(t *testing.T) {
			t.Parallel()
			b := new(books)
			w := exampletest.Start(t, exampletest.Options{Host: b.host, Tools: exampletest.ReadTools(t, definitions)})
			r := w.Submit("plan"+name+".json", client.SubmitOptions{Run: "saga"})
			exampletest.Check(t, w.Wait(r), "outcome"+name+".json")
			require.ElementsMatch(t, c.booked, b.booked)
			require.Equal(t, c.journal, b.journal)
		})
	}
}

func TestByHand(t *testing.T) {
	t.Parallel()
	lines := exampletest.ByHand(t, run)
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}
