package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// TestAQuestionIsNoCall: neither the attempt that asked is one, nor is the time until the answer among the times.
func TestAQuestionIsNoCall(t *testing.T) {
	t.Parallel()
	t0 := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	asked := outcome.Try{Attempt: 1, Started: at(20), Ended: at(50), Asked: true}
	calls := callsOf([]outcome.Step{
		{ID: "a", Tool: "t", Attempts: 2, Ready: at(10), Started: at(90_000), Ended: at(90_007),
			Tries: []outcome.Try{asked, {Attempt: 2, Started: at(90_000), Ended: at(90_007)}}},
		{ID: "b", Tool: "t", Attempts: 1, Ready: at(10), Decided: at(80_000), Tries: []outcome.Try{asked}, Error: fault.New(fault.Rejected, "no")},
		{ID: "c", Tool: "t", Attempts: 3, Ready: at(10), Started: at(70_000), Ended: at(70_009)}, // too long for its tries
		{ID: "d", Tool: "t", Attempts: 1, Ready: at(10), Started: at(15), Ended: at(20)},
	}, nil)
	all := summed(map[counter][]call{{}: calls}, at(90_000))
	require.Len(t, all, 1)
	f := all[0]
	require.Equal(t, 3, f.Calls)
	require.Equal(t, 2, f.Asked)
	require.InDelta(t, 7, f.P50, 0)
	require.InDelta(t, 9, f.P99, 0)
	require.InDelta(t, 10, f.WaitP99, 0, "that of the first attempts; of c nobody knows it")
}
