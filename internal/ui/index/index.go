// Package index keeps one line of each run in memory, so that a page can list a hundred thousand of them by any filter
// in milliseconds. It is told of runs by whoever reads the streams (Reading), and does no I/O itself.
//
// A run has two sources: its plan record, which stands while it goes on and for a moment longer, and what is kept of
// it once it is over. The second counts unless the first is of a later plan under the same id, as after a rejection.
package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/internal/ui/index/tally"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Line is what a list shows of a run.
type Line struct {
	// Key names tenant and run as the history bucket does: "acme.order=20=2342".
	Key    string
	Status outcome.RunStatus
	// Generation is the sequence of the run's plan record.
	Generation          uint64
	Submitted, Finished time.Time
	Stats               outcome.Stats
	// Tools are the first outcome.HeadTools that the run calls. Failed is the first step that failed.
	Tools  []string
	Failed string
	// RetryOf is the run that this one tries again, as a plain id.
	RetryOf string
	// Settled says that a retry of the run succeeded, so that nobody has to look after it.
	Settled bool
	// Waits is the step of a run that goes on which has waited too long for a worker; nil for none.
	Waits *Wait

	at    uint64                    // where its document lies; 0 for a run that is not over
	calls map[string]*outcome.Calls // until they are summed up
}

// Wait is a step that waits for a worker of its tool.
type Wait struct {
	Step, Tool string
	Since      time.Time
}

// Of returns the line of a finished run, whose document lies at a sequence of its bucket and has this head.
func Of(r subjects.Run, at uint64, h outcome.Head) Line {
	return Line{
		Key: r.Key(), Status: h.Status, Generation: h.Generation, Submitted: h.Submitted, Finished: h.Finished,
		Stats: h.Stats, Tools: h.Tools, Failed: h.Failed, RetryOf: h.RetryOf, at: at, calls: h.Calls,
	}
}

// Attention reports whether somebody should look after the run.
func (l *Line) Attention() bool {
	switch l.Status {
	case outcome.Failed, outcome.Partial, outcome.Expired:
		return !l.Settled
	case outcome.Running:
		return l.Waits != nil
	default:
		return false
	}
}

// Tenant returns the tenant of the run.
func (l *Line) Tenant() string {
	tenant, _, _ := strings.Cut(l.Key, ".")
	return tenant
}

// Run returns the name of the run.
func (l *Line) Run() subjects.Run {
	r, _ := subjects.ParseHistoryKey(l.Key) // every line has one
	return r
}

// entry is a run: the line that is shown of it, and what its two sources say.
type entry struct {
	Line         // without its tools
	tools string // packed
	plan  uint64 // sequence of its plan record; 0 for none
	// The readings that told of its plan record and of its document the last time.
	planIn, docIn uint32
}

// Index holds the lines of runs. Its methods may be called from any goroutine.
type Index struct {
	mu      sync.Mutex
	runs    map[string]*entry
	order   []*entry // newest first, where it is not stale
	stale   bool
	tools   names
	settled map[string]bool // keys of runs of which a retry succeeded
	calls   *tally.Tally    // of the last reading that is complete, or of the first one
	reading *Reading        // the last one; nil for none
	version uint64
	changed chan struct{}
}

// New returns an index of no runs.
func New() *Index {
	return &Index{
		runs: map[string]*entry{}, settled: map[string]bool{}, calls: tally.New(), changed: make(chan struct{}, 1),
	}
}

// Changed has a value whenever lines have changed since it was last received.
func (ix *Index) Changed() <-chan struct{} { return ix.changed }

// Version counts the changes.
func (ix *Index) Version() uint64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.version
}

// Len returns the number of runs.
func (ix *Index) Len() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return len(ix.runs)
}

// settle notes that a retry of a run succeeded, and so of the run that this one tried again.
func (ix *Index) settle(key string) {
	for !ix.settled[key] {
		ix.settled[key] = true
		e := ix.runs[key]
		if e == nil {
			return
		}
		e.Settled = true
		if e.RetryOf == "" {
			return
		}
		key = subjects.NewRun(e.Tenant(), e.RetryOf).Key()
	}
}

// Known returns the line of a run whose document lies at a sequence, if it was taken already.
func (ix *Index) Known(key string, at uint64) (Line, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	e := ix.runs[key]
	if e == nil || e.at != at {
		return Line{}, false
	}
	return ix.line(e), true
}

// Get returns the line of a run.
func (ix *Index) Get(key string) (Line, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	e := ix.runs[key]
	if e == nil {
		return Line{}, false
	}
	return ix.line(e), true
}

// Tenants returns all tenants that have runs, sorted.
func (ix *Index) Tenants() []string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	all := map[string]bool{}
	for _, e := range ix.runs {
		all[e.Tenant()] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// touch notes that lines have changed.
func (ix *Index) touch() {
	ix.stale = true
	ix.changes()
}

// changes tells of it.
func (ix *Index) changes() {
	ix.version++
	select {
	case ix.changed <- struct{}{}:
	default:
	}
}

// line returns the whole line of a run.
func (ix *Index) line(e *entry) Line {
	l := e.Line
	l.Tools = ix.tools.unpack(e.tools)
	return l
}

func newestFirst(a, b *entry) int {
	if n := b.Submitted.Compare(a.Submitted); n != 0 {
		return n
	}
	return cmp.Compare(a.Key, b.Key)
}

// sorted returns all entries, newest first. The caller holds the lock.
func (ix *Index) sorted() []*entry {
	if ix.stale {
		slices.SortFunc(ix.order, newestFirst)
		ix.stale = false
	}
	return ix.order
}
