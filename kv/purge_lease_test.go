package kv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// Two runs have steps of one tool out, the second is cancelled, a third one's step is acknowledged, and the worker of
// the first dies: its step must go to another.
func TestTakingBackALeasedStepForgetsNoOtherLease(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{AckWait: 400 * time.Millisecond})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 10)
	of := func(run string) subjects.Attempt {
		return subjects.Attempt{Run: subjects.NewRun("t", run), Generation: 1, Tool: "tool", Step: "a", Number: 1}
	}
	leased := map[string]*kv.Delivery{}
	for _, run := range []string{"dies", "cancelled", "done"} {
		dispatch(t, s, kv.Dispatch{Attempt: of(run)})
		leased[run] = receive(t, got, run)
	}
	require.NoError(t, s.Queue.PurgeSteps(within(t, 2*time.Minute), of("cancelled").Run, 1, "tool", tool.Shard))
	require.NoError(t, leased["done"].Ack())
	again := receive(t, got, "the step whose worker died")
	require.Equal(t, subjects.Step(of("dies"), tool.Shard), again.Subject)
	require.Equal(t, 2, again.Delivered)
}
