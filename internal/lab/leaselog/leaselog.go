// Package leaselog notes when executions begin and end, all of them, and computes from the whole log how many there
// were at a time: the proof that a tool's fan-out limit holds over all workers. It samples nothing.
//
//	var log leaselog.Log
//	w.Use(func(next worker.Handler) worker.Handler {
//		return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
//			info, _ := worker.InfoFrom(ctx)
//			defer log.Begin(leaselog.Entry{Tool: info.Tool, Worker: info.Worker, Key: info.Key})()
//			return next(ctx, args)
//		}
//	})
//	…
//	require.LessOrEqual(t, leaselog.Max(log.Entries("search")), 8)
package leaselog

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Entry is one execution. Times are those of one monotonic clock, since the log began.
type Entry struct {
	Tool, Worker, Key string
	// Steps is how many steps were executed in one call, each with a lease of its own: 1 but for batches.
	Steps      int
	Begin, End time.Duration
	// Open says that it had not ended when the log was read: End is of no meaning.
	Open bool
}

// Log collects the executions of the workers of one process. The zero value is ready for use.
type Log struct {
	mu      sync.Mutex
	start   time.Time
	entries []Entry
}

// Begin notes that an execution begins, with the names of e; the function that it gives notes its end.
func (l *Log) Begin(e Entry) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.start.IsZero() {
		l.start = time.Now()
	}
	i := len(l.entries)
	e.Begin, e.Open = time.Since(l.start), true
	l.entries = append(l.entries, e)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entries[i].End, l.entries[i].Open = time.Since(l.start), false
	}
}

// Entries returns what is noted of a tool so far, in the order in which it began.
func (l *Log) Entries(tool string) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Entry
	for _, e := range l.entries {
		if e.Tool == tool {
			all = append(all, e)
		}
	}
	return all
}

// Max returns the most steps that were in execution at one time. Two that touch count as simultaneous: between the end
// of one lease and the begin of the next lie a record and an acknowledgement, which take time.
func Max(entries []Entry) int {
	type edge struct {
		at    time.Duration
		delta int
	}
	edges := make([]edge, 0, 2*len(entries))
	for _, e := range entries {
		n := max(e.Steps, 1)
		edges = append(edges, edge{e.Begin, n})
		if !e.Open {
			edges = append(edges, edge{e.End, -n})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.delta, a.delta)) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}
