package kv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTheServersTimeIsWhatWasHeardAndWhatPassedSince(t *testing.T) {
	var r kv.ServerTime
	require.False(t, r.Known())
	r.Heard(noon, 40*time.Second)
	require.True(t, r.Known())
	require.Equal(t, noon, r.At(40*time.Second))
	require.Equal(t, noon.Add(time.Minute), r.At(100*time.Second))
	require.Equal(t, 100*time.Second, r.When(noon.Add(time.Minute)))
}

// A record that was given late, because the process stood still, and one of a server whose clock is behind take no
// time back.
func TestTheServersTimeNeverGoesBack(t *testing.T) {
	var r kv.ServerTime
	r.Heard(noon, time.Second)
	r.Heard(noon.Add(time.Second), 32*time.Second) // stood still for 30 s
	require.Equal(t, noon.Add(31*time.Second), r.At(32*time.Second))
	r.Heard(noon.Add(-10*time.Minute), 33*time.Second)
	require.Equal(t, noon.Add(32*time.Second), r.At(33*time.Second))
	r.Heard(noon.Add(time.Hour), 34*time.Second) // the machine was suspended, and its clock with it
	require.Equal(t, noon.Add(time.Hour), r.At(34*time.Second))
}

// A server that led with a clock of its own is forgotten some time after another leads.
func TestWhatWasHeardLongAgoCountsNoMore(t *testing.T) {
	var s kv.RecentTime
	s.Heard(noon.Add(10*time.Minute), time.Second)
	at := func(mono time.Duration) time.Duration { return s.Best().At(mono).Sub(noon) - mono }
	require.Equal(t, 10*time.Minute-time.Second, at(2*time.Second))
	s.Heard(noon.Add(30*time.Second), 30*time.Second)
	require.Equal(t, 10*time.Minute-time.Second, at(30*time.Second))
	for mono := 62 * time.Second; mono < 3*time.Minute; mono += time.Second {
		s.Heard(noon.Add(mono), mono)
	}
	require.Zero(t, at(3*time.Minute))
}
