package client

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func entries(w *waits) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// Who submits and never waits leaves nothing behind, even if no notice ever comes.
func TestDroppedHandlesAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWaits()
	kept := w.enter(subjects.NewRun("default", "kept"))
	for range 1000 {
		w.enter(subjects.NewRun("default", "dropped"))
	}
	for i := range 1000 {
		w.enter(subjects.Run{Tenant: "default", ID: "r" + string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}
	require.Eventually(t, func() bool { runtime.GC(); return entries(w) == 1 }, 2*time.Minute, 10*time.Millisecond)
	require.Same(t, kept, w.enter(kept.run))
	runtime.KeepAlive(kept)
}

func TestReadsAreSpreadOut(t *testing.T) {
	t.Parallel()
	w := newWaits()
	start := time.Unix(0, 0)
	p := w.enter(subjects.NewRun("default", "r"))
	w.join(p, start)
	w.join(p, start) // two waiters, one entry
	var gaps []time.Duration
	last := start
	for now := start; len(gaps) < len(pauses)+2; now = now.Add(10 * time.Millisecond) {
		for _, q := range w.due(now, 100) {
			gaps = append(gaps, now.Sub(last))
			last = now
			w.again(q, now)
		}
	}
	require.Equal(t, append(pauses, pauses[len(pauses)-1], pauses[len(pauses)-1]), gaps)

	// The last waiter leaves: the next look drops the entry.
	w.leave(p)
	require.Len(t, w.due(last.Add(time.Minute), 100), 1)
	w.again(p, last)
	w.leave(p)
	require.Empty(t, w.due(last.Add(time.Hour), 100))
	for _, q := range w.queues {
		require.Empty(t, q)
	}
	// Somebody waits again: it starts anew.
	w.join(p, last)
	require.Empty(t, w.due(last, 100))
	require.Len(t, w.due(last.Add(pauses[0]), 100), 1)
}

func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWaits()
	start := time.Unix(0, 0)
	var held []*pending
	for i := range 100 {
		p := w.enter(subjects.Run{Tenant: "default", ID: "r" + string(rune('A'+i%26)) + string(rune('a'+i/26))})
		held = append(held, p)
		w.join(p, start)
	}
	w.all()
	seen := map[*pending]bool{}
	for range 4 {
		due := w.due(start, 25)
		require.Len(t, due, 25)
		for _, p := range due {
			require.False(t, seen[p])
			seen[p] = true
		}
	}
	require.Empty(t, w.due(start, 25))
	runtime.KeepAlive(held)
}

func TestHurry(t *testing.T) {
	t.Parallel()
	w := newWaits()
	start := time.Unix(0, 0)
	a, b := w.enter(subjects.NewRun("default", "a")), w.enter(subjects.NewRun("default", "b"))
	w.join(a, start)
	w.join(b, start)
	w.hurry("b")
	w.hurry("nobody")
	due := w.due(start, 100)
	require.Equal(t, []*pending{b}, due)
	w.again(b, start)
	require.Len(t, w.due(start.Add(pauses[0]), 100), 1)
	runtime.KeepAlive(a)
}

func TestTheFirstWordCounts(t *testing.T) {
	t.Parallel()
	w := newWaits()
	p := w.enter(subjects.NewRun("default", "r"))
	w.resolve("r", []byte("first"))
	w.resolve("r", []byte("second"))
	w.resolve("nobody", []byte("third"))
	<-p.done
	require.Equal(t, "first", string(p.raw))
	require.Zero(t, entries(w))
	// The id may be used again, much later; that is another entry.
	again := w.enter(p.run)
	require.NotSame(t, p, again)
	w.finish(p, func() { t.Error("it was over") })
	require.Same(t, again, w.enter(p.run))
}
