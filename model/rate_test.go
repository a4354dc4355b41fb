package model

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Calls that come at random, of sizes at random, and come back when they are told: in no minute begin more than twice
// the limits (what had gathered, and what came), each waits at most once, in turn, and all are let in.
func TestARateIsKept(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := Model{RPM: 30 + rng.Int64N(100), TPM: 10_000 + rng.Int64N(100_000)}
		type call struct {
			who    string
			tokens int64
			at     time.Time
			waited int
		}
		now, calls := time.Unix(1_800_000_000, 0), []call{}
		for i := range 400 {
			now = now.Add(time.Duration(rng.Int64N(500)) * time.Millisecond)
			calls = append(calls, call{fmt.Sprint(i), rng.Int64N(2000), now, 0})
		}
		var r Rate
		var begun []call
		for len(calls) > 0 {
			first := 0
			for i, c := range calls {
				if c.at.Before(calls[first].at) {
					first = i
				}
			}
			c := calls[first]
			calls = append(calls[:first], calls[first+1:]...)
			r = ParseRate(r.JSON())
			wait := r.Take(m, c.at, c.who, c.tokens)
			if wait == 0 {
				begun = append(begun, c)
				continue
			}
			c.at, c.waited = c.at.Add(wait), c.waited+1
			require.Equal(t, 1, c.waited, "seed %d", seed)
			calls = append(calls, c)
		}
		require.Len(t, begun, 400)
		for i, from := range begun {
			var requests, tokens int64
			for _, c := range begun[i:] {
				if c.at.Sub(from.at) < time.Minute {
					requests, tokens = requests+1, tokens+c.tokens
				}
			}
			require.LessOrEqual(t, requests, 2*m.RPM+1, "seed %d", seed)
			require.LessOrEqual(t, tokens, 2*m.TPM+2000, "seed %d", seed)
		}
		require.Empty(t, r.Turns)
	}
}

func TestARateIsCorrected(t *testing.T) {
	t.Parallel()
	m, now := Model{RPM: 60, TPM: 6000}, time.Unix(1_800_000_000, 0)
	var r Rate
	require.Zero(t, r.Take(m, now, "a", 5000))
	r.Settle(m, now, 5000, 1000, http.Header{}, 0)
	require.InDelta(t, 5000, r.Tokens, 0)
	require.Zero(t, r.Take(m, now, "b", 5000), "what was not used is there")
	r.Settle(m, now, 5000, 5000, http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Remaining-Tokens": {"x"}}, 0)
	require.Equal(t, time.Second, r.Take(m, now, "c", 0), "the provider knows of others")
	require.Equal(t, 500*time.Millisecond, r.Take(m, now.Add(500*time.Millisecond), "c", 0), "who comes too early waits on")
	require.Zero(t, r.Take(m, now.Add(time.Second), "c", 0))
	r.Settle(m, now.Add(time.Second), 0, 0, nil, 20*time.Second)
	require.Equal(t, 20*time.Second, r.Take(m, now.Add(time.Second), "d", 0), "who was refused is left alone")
	require.Equal(t, 20*time.Second, r.Take(m, now.Add(time.Second), "d", 0), "asked twice, as after a death")
	require.Len(t, r.Turns, 1)
	require.Zero(t, r.Take(Model{}, now.Add(time.Hour), "e", 1<<60), "no limits")
	require.Zero(t, (&Rate{}).Take(m, now, "f", 1<<60), "more than a minute's worth takes all of it")
}

func TestARateIsBounded(t *testing.T) {
	t.Parallel()
	m, now := Model{RPM: 1}, time.Unix(1_800_000_000, 0)
	var r Rate
	for i := range 3 * maxTurns {
		r.Take(m, now, fmt.Sprint(i), 1)
	}
	require.Len(t, r.Turns, maxTurns)
	require.Positive(t, r.Take(m, now, "more", 1))
	require.Less(t, len(r.JSON()), 64<<10)
	back := r.Take(m, now.Add(-time.Hour), "behind", 1) // a clock that is behind neither fills nor breaks
	require.Positive(t, back)
	for _, raw := range []string{"", "x", `{"requests":"1"}`, `[]`} {
		require.Equal(t, Rate{}, ParseRate([]byte(raw)))
	}
	r.fill(m, now.Add(maxTurns*time.Minute+3*time.Minute))
	require.Empty(t, r.Turns, "who does not come back is forgotten")
}
