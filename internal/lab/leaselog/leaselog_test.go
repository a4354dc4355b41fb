package leaselog_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/leaselog"
)

func dur(n int) time.Duration { return time.Duration(n) }

func TestMax(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entries []leaselog.Entry
		want    int
	}{
		"none":               {nil, 0},
		"one":                {[]leaselog.Entry{{Begin: 1, End: 2}}, 1},
		"apart":              {[]leaselog.Entry{{Begin: 1, End: 2}, {Begin: 3, End: 4}}, 1},
		"touching":           {[]leaselog.Entry{{Begin: 1, End: 2}, {Begin: 2, End: 3}}, 2},
		"within":             {[]leaselog.Entry{{Begin: 1, End: 9}, {Begin: 2, End: 3}, {Begin: 4, End: 5}}, 2},
		"a short peak":       {[]leaselog.Entry{{Begin: 1, End: 5}, {Begin: 4, End: 9}, {Begin: 4, End: 5}, {Begin: 8, End: 9}}, 3},
		"never ended":        {[]leaselog.Entry{{Begin: 1, Open: true}, {Begin: 100, End: 101}}, 2},
		"a batch":            {[]leaselog.Entry{{Begin: 1, End: 5, Steps: 7}, {Begin: 2, End: 3}}, 8},
		"not in their order": {[]leaselog.Entry{{Begin: 7, End: 8}, {Begin: 1, End: 7}}, 2},
	} {
		require.Equal(t, c.want, leaselog.Max(c.entries), name)
	}
}

// The quick computation and the plain one, which looks at every moment, agree.
func TestMaxAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var all []leaselog.Entry
		for range r.IntN(12) {
			begin := r.IntN(20)
			all = append(all, leaselog.Entry{Begin: dur(begin), End: dur(begin + r.IntN(8)), Steps: 1 + r.IntN(3), Open: r.IntN(9) == 0})
		}
		want := 0
		for at := range 40 {
			n := 0
			for _, e := range all {
				if e.Begin <= dur(at) && (e.Open || dur(at) <= e.End) {
					n += e.Steps
				}
			}
			want = max(want, n)
		}
		require.Equal(t, want, leaselog.Max(all), "%+v", all)
	}
}

func TestLogNotesAll(t *testing.T) {
	t.Parallel()
	var log leaselog.Log
	const n = 50
	var all, begun sync.WaitGroup
	begun.Add(n)
	for range n {
		all.Go(func() {
			end := log.Begin(leaselog.Entry{Tool: "t", Steps: 2})
			begun.Done()
			begun.Wait() // all of them at once
			end()
		})
	}
	open := log.Begin(leaselog.Entry{Tool: "open"})
	all.Wait()
	require.Len(t, log.Entries("t"), n)
	require.Equal(t, 2*n, leaselog.Max(log.Entries("t")))
	require.Empty(t, log.Entries("other"))
	require.True(t, log.Entries("open")[0].Open)
	open()
	require.False(t, log.Entries("open")[0].Open)
	require.Greater(t, log.Entries("open")[0].End, log.Entries("open")[0].Begin)
}
