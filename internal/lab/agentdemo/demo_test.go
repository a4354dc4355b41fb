package agentdemo

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/outcome"
)

// TestMain lets the test binary be the orchestrators that are killed.
func TestMain(m *testing.M) {
	if !chaos.Main() {
		os.Exit(m.Run())
	}
}

// The demonstration does what its report says: a call fails and is gone around, nothing is asked for or written twice, and
// what the tools returned stays out of the requests.
func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := Run(ctx)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, r.Write(&b, func(_, text string) string { return text }))
	t.Log("\n" + b.String())
	require.Equal(t, outcome.Succeeded, r.Status)
	require.Empty(t, r.Lost())
	require.Equal(t, []int{0, 1, 2, 3}, r.Asked)
	var calls []string
	for _, c := range r.Calls {
		calls = append(calls, c.Tool+" "+string(c.Status))
	}
	require.Equal(t, []string{"read_orders failed", "total_by_customer skipped", "read_orders succeeded", "total_by_customer succeeded", "write_letter succeeded"}, calls)
	require.Equal(t, "approved by the demonstration", r.Calls[4].Answered)
	require.Greater(t, r.Returned, int64(100_000))
	require.Less(t, r.Shown, int64(8_000))
	require.Positive(t, r.Left.Tokens)
	require.Less(t, r.Left.Tokens, budgetTokens)

	all, err := newDesk(t.TempDir())
	require.NoError(t, err)
	known, err := all.readOrders(t.Context(), year{newest})
	require.NoError(t, err)
	sums := map[string]float64{}
	best := ""
	for _, o := range known.Orders {
		if sums[o.Customer] += o.Euros; best == "" || sums[o.Customer] > sums[best] {
			best = o.Customer
		}
	}
	for c := range sums {
		require.LessOrEqual(t, sums[c], sums[best])
	}
	require.Contains(t, r.Letter, "Dear "+best+",")
	for _, part := range []string{"round 3", "kill -9", "0 repeated", "no orders of 2026", "nothing that stood", "$", "Dear " + best} {
		require.Contains(t, b.String(), part)
	}
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len([]rune(line)), 121, line)
	}
}

// What a kill would have lost is said.
func TestALossIsTold(t *testing.T) {
	t.Parallel()
	r := &Report{Status: outcome.Failed, Repeated: 2, Letters: 0}
	require.Equal(t, []string{"the run: it failed", "2 answers of the planner", "the letter: it was written 0 times"}, r.Lost())
}
