package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestARejectionBeforeTheAcknowledgement: the plan is judged faster than its PubAck comes.
func TestARejectionBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	rejection := func(generation uint64) []byte {
		return (&outcome.Outcome{Run: "r", Status: outcome.Rejected, Generation: generation}).JSON()
	}
	for _, c := range []struct {
		told, acknowledged uint64
		over               bool
	}{{7, 7, true}, {7, 8, false}, {8, 7, true}, {0, 7, false}} {
		w := newWaits()
		p := w.enter(subjects.NewRun("t", "r"))
		w.resolve("r", rejection(c.told))
		require.False(t, isDone(p), "whose it is isn't known yet")
		p = w.planned(p, "d", c.acknowledged)
		require.Equal(t, c.over, isDone(p), "%+v", c)
		w.resolve("r", rejection(c.acknowledged))
		require.True(t, isDone(p))

		next := w.planned(p, "e", c.acknowledged+10)
		require.NotSame(t, p, next, "the next plan's end is its own")
		require.False(t, isDone(next))
	}
}
