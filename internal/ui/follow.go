package ui

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/ui/index"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	// renewEvery is how often the index is read anew: what expired or was purged is told by nobody.
	renewEvery = time.Hour
	// headsWide is how many heads of finished runs are read at a time, headsAhead how many wait for it.
	headsWide, headsAhead = 8, 1024
	followAgain           = 2 * time.Second
)

// follower keeps the index of all runs.
type follower struct {
	store *kv.Store
	log   *slog.Logger

	lines   *index.Index
	reading atomic.Bool // nothing was read to the end yet
	trouble atomic.Pointer[fault.Error]
}

func newFollower(store *kv.Store, log *slog.Logger) *follower {
	f := &follower{store: store, log: log, lines: index.New()}
	f.reading.Store(true)
	return f
}

// index returns what is shown.
func (f *follower) index() *index.Index { return f.lines }

// run follows the streams until ctx ends. The index is shown as it is read the first time; from then on it is read anew in
// its place, and what can't be told to be right any more stays in sight until that is complete.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithCancelCause(ctx)
		err := f.follow(life, func(err error) { end(err) }, f.lines.Read())
		end(nil)
		if err == nil || ctx.Err() != nil {
			continue
		}
		f.trouble.Store(fault.As(err))
		f.log.Warn("the list of runs is read again", "error", err)
		backoff.Pause(ctx, followAgain)
	}
}

// follow reads the index and keeps it right, until it is to be read anew (nil) or can't be told to be right (an error).
func (f *follower) follow(parent context.Context, lost func(error), into *index.Reading) error {
	parent, stop := context.WithCancel(parent)
	reads, ctx := errgroup.WithContext(parent)
	defer func() {
		stop()
		_ = reads.Wait() // what went wrong is the cause of ctx
	}()
	shards := f.store.Ledger.Shards()
	behind := newCount(shards + 1) // cursors that have not handed on all that was there, and heads to be read
	heads := &heads{f: f, known: f.lines, into: into, todo: make(chan head, headsAhead), behind: behind}
	for range headsWide {
		reads.Go(func() error { return heads.read(ctx) })
	}
	caughtUp := func(uint64) { behind.add(-1) }
	for shard := range shards {
		if _, err := f.store.Ledger.FollowPlans(ctx, shard, func(r subjects.Run, e kv.Entry) {
			p, _ := wire.ParsePlan(e.Header) // what is wrong with the rest is its run's matter
			into.Plan(r, e.Seq, e.Time, p.Retry.Of)
		}, caughtUp, lost); err != nil {
			return err
		}
	}
	if _, err := f.store.Archive.FollowHeads(ctx, func(r subjects.Run, e kv.Entry) {
		heads.want(ctx, r, e)
	}, caughtUp, lost); err != nil {
		return err
	}
	timer := time.NewTimer(renewEvery)
	defer timer.Stop()
	for complete := behind.none; ; {
		select {
		case <-complete:
			f.complete(into)
			complete = nil
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// count counts what is left to do; none is closed once that is nothing.
type count struct {
	mu   sync.Mutex
	left int
	none chan struct{}
}

func newCount(left int) *count { return &count{left: left, none: make(chan struct{})} }

func (c *count) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.left
	if c.left += n; c.left == 0 && before > 0 {
		select {
		case <-c.none: // it was nothing before
		default:
			close(c.none)
		}
	}
}

// complete shows that all was read.
func (f *follower) complete(into *index.Reading) {
	into.Complete()
	f.reading.Store(false)
	f.trouble.Store(nil)
	debug.FreeOSMemory() // what it was read from is of no use any more, and is read again in an hour
}

// head is a finished run whose line is not known.
type head struct {
	run subjects.Run
	at  uint64
}

// heads reads what lists show of finished runs, as far as it isn't known from a reading before.
type heads struct {
	f     *follower
	known *index.Index
	into  *index.Reading
	todo  chan head

	behind *count
}

// want is called by a cursor with the headers of a document. They say what a list shows, but for what an older
// orchestrator wrote. Where many of those wait to be read the cursor waits, and with it the server.
func (h *heads) want(ctx context.Context, r subjects.Run, e kv.Entry) {
	if head, ok := wire.ParseHead(e.Header); ok && wire.KindOutcome.Known(e.Header) {
		h.into.Finished(index.Of(r, e.Seq, head))
		return
	}
	if l, ok := h.known.Known(r.Key(), e.Seq); ok {
		h.into.Finished(l)
		return
	}
	h.behind.add(1)
	select {
	case h.todo <- head{r, e.Seq}:
	case <-ctx.Done():
	}
}

func (h *heads) read(ctx context.Context) error {
	for {
		select {
		case next := <-h.todo:
			if err := h.one(ctx, next); err != nil {
				return err
			}
			h.behind.add(-1)
		case <-ctx.Done():
			return nil
		}
	}
}

// one reads the head of a run. One that has gone meanwhile, or was written by a newer Stepjet, is left out.
func (h *heads) one(ctx context.Context, next head) error {
	doc, at, err := h.f.store.Archive.HistoryAt(ctx, next.run)
	switch code := fault.CodeOf(err); {
	case err == nil:
		of := outcome.HeadOf(doc)
		of.Calls = nil // nor are they known where the next reading finds the line there
		h.into.Finished(index.Of(next.run, at, of))
		return nil
	case code == fault.NotFound, code == fault.NewerVersion, ctx.Err() != nil:
		return nil
	}
	return err
}
