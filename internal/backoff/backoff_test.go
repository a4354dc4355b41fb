package backoff_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/backoff"
)

func TestPausesDoubleUpToTheirBound(t *testing.T) {
	t.Parallel()
	b := backoff.Between(10*time.Millisecond, 100*time.Millisecond)
	for _, longest := range []time.Duration{10, 20, 40, 80, 100, 100} {
		longest *= time.Millisecond
		require.Equal(t, longest == 100*time.Millisecond, b.Spent())
		d := b.Next()
		require.LessOrEqual(t, d, longest)
		require.GreaterOrEqual(t, d, longest/2)
	}
	one := backoff.Between(time.Second, time.Millisecond)
	require.LessOrEqual(t, one.Next(), time.Millisecond, "the first is no longer than the longest")
}

// Those that failed together come again one by one.
func TestPausesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		b := backoff.Between(time.Second, time.Minute)
		seen[b.Next()] = true
	}
	require.Greater(t, len(seen), 90)
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	require.True(t, backoff.Pause(t.Context(), time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	require.False(t, backoff.Pause(ctx, time.Hour))
	require.Less(t, time.Since(began), time.Minute)
}

// A few may be at once, then one in each interval; who waits as long as it says is let.
func TestPace(t *testing.T) {
	t.Parallel()
	var p backoff.Pace
	now := time.Unix(0, 0)
	take := func() time.Duration { return p.Take(now, time.Second, 3) }
	for range 3 {
		require.Zero(t, take())
	}
	require.Equal(t, time.Second, take())
	now = now.Add(300 * time.Millisecond)
	wait := take()
	require.Equal(t, 700*time.Millisecond, wait)
	now = now.Add(wait)
	require.Zero(t, take())
	require.Equal(t, time.Second, take())
	now = now.Add(time.Hour)
	for range 3 {
		require.Zero(t, take())
	}
	require.NotZero(t, take())
}
