package outcome_test

import (
	"encoding/json"
	"math/rand"
	"slices"
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
	calls := outcome.CallsOf([]outcome.Step{
		{ID: "a", Tool: "t", Attempts: 2, Ready: at(10), Started: at(90_000), Ended: at(90_007),
			Tries: []outcome.Try{asked, {Attempt: 2, Started: at(90_000), Ended: at(90_007)}}},
		{ID: "b", Tool: "t", Attempts: 1, Ready: at(10), Decided: at(80_000), Tries: []outcome.Try{asked}, Error: fault.New(fault.Rejected, "no")},
		{ID: "c", Tool: "t", Attempts: 3, Ready: at(10), Started: at(70_000), Ended: at(70_009)}, // its document had no room for tries
		{ID: "d", Tool: "t", Attempts: 1, Ready: at(10), Started: at(15), Ended: at(20), Error: fault.New(fault.ToolFailed, "no")},
		{ID: "e", Tool: "t", Attempts: 1, Reused: true}, {ID: "f", Attempts: 1}, {ID: "g", Tool: "t"},
		{ID: "h", Tool: "t", Attempts: 1, Items: []outcome.Step{{ID: "h=0", Tool: "other", Attempts: 1, Ready: at(1), Started: at(1), Ended: at(1)}}},
	})
	require.Len(t, calls, 2)
	require.Equal(t, outcome.Calls{Calls: 1, Ran: outcome.Spans{0: 1}, Waited: outcome.Spans{0: 1}}, *calls["other"])
	c := calls["t"]
	require.Equal(t, 3, c.Calls)
	require.Equal(t, 2, c.Asked)
	require.Equal(t, 1, c.Failed)
	require.Equal(t, map[fault.Code]int{fault.ToolFailed: 1}, c.Codes)
	require.InEpsilon(t, 7, c.Ran.Quantile(0.5), 0.1)
	require.InEpsilon(t, 9, c.Ran.Quantile(0.99), 0.1)
	require.InEpsilon(t, 10, c.Waited.Quantile(0.99), 0.1, "that of the first attempts; of c nobody knows it")
}

// TestSpansAreKnownWithinNinePercent, whatever they are, also once they were written, read and put together.
func TestSpansAreKnownWithinNinePercent(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	for range 200 {
		var all []float64
		var sum outcome.Calls
		for range 1 + rng.Intn(3) {
			var part outcome.Calls
			for range 1 + rng.Intn(50) {
				ms := 1 + rng.ExpFloat64()*float64(int(1)<<rng.Intn(20))
				all = append(all, ms)
				part.Ran.Add(time.Duration(ms * float64(time.Millisecond)))
			}
			raw, err := json.Marshal(part)
			require.NoError(t, err)
			var read outcome.Calls
			require.NoError(t, json.Unmarshal(raw, &read))
			sum.Merge(&read)
		}
		slices.Sort(all)
		for _, part := range []float64{0.5, 0.99} {
			at := int(part * float64(len(all)))
			if float64(at) == part*float64(len(all)) {
				at--
			}
			require.InEpsilon(t, all[at], sum.Ran.Quantile(part), 0.0906)
		}
	}
	require.InDelta(t, -1, outcome.Spans(nil).Quantile(0.5), 0)
	var odd outcome.Calls
	odd.Merge(&outcome.Calls{Ran: outcome.Spans{-1: 1, 1 << 40: 1, 3: -5}})
	require.Empty(t, odd.Ran, "what is no length is left out")
}
