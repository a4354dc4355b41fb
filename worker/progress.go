package worker

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/outcome"
)

// Progress is what a handler says of how far its step is.
type Progress = outcome.Progress

// Report tells whoever watches the run how far the step is whose handler was given ctx. Nothing rests on it, and
// nothing is stored: it may be lost. It is told four times a second, a few times at once at first, and of what is
// said in between the latest; it never blocks, and does nothing outside of a handler, or in a batch.
func Report(ctx context.Context, p Progress) {
	if x, _ := ctx.Value(executionKey{}).(*execution); x != nil {
		reportsOf(x).say(p)
	}
}

// How often it is told how far a step is.
const (
	reportEvery   = 250 * time.Millisecond
	reportsAtOnce = 4
)

// reports are what the handler of one execution says of how far it is.
type reports struct {
	x *execution

	mu    sync.Mutex
	pace  backoff.Pace
	next  *Progress   // said, and not told yet
	timer *time.Timer // tells it
	over  bool
}

// reportsOf returns those of an execution, made when they are first needed: most handlers say nothing.
func reportsOf(x *execution) *reports {
	if r := x.said.Load(); r != nil {
		return r
	}
	x.said.CompareAndSwap(nil, &reports{x: x})
	return x.said.Load()
}

func (r *reports) say(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
	case r.next != nil:
		r.next = &p
	default:
		wait := r.pace.Take(time.Now(), reportEvery, reportsAtOnce)
		if wait == 0 {
			r.tell(p)
			return
		}
		r.next = &p
		r.timer = time.AfterFunc(wait, r.late)
	}
}

// late tells what was said too soon after the one before.
func (r *reports) late() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil && !r.over {
		r.pace.Take(time.Now(), reportEvery, reportsAtOnce)
		r.tell(*r.next)
	}
	r.next = nil
}

// stop tells no more: the execution is over.
func (r *reports) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over, r.next = true, nil
	if r.timer != nil {
		r.timer.Stop()
	}
}

// tell tells it, unless the server refuses that, since permissions are of before there was such a thing: then it is
// left until there is another connection, so that no log fills up. r.mu is held.
func (r *reports) tell(p Progress) {
	x := r.x
	h, beats := x.feed.tool, x.e.store.Beats()
	life := x.e.w.nc.Stats().Reconnects + 1
	if h.untold.Load() == life {
		return
	}
	if before := h.reported.Load(); before != nil && beats.Untold(*before) != nil {
		if h.untold.Swap(life) != life {
			x.e.log.Warn("this worker may not tell how far its steps are; it works all the same", "tool", h.def.Name,
				"code", fault.Permission, "hint", "print its permissions anew with stepjet acl worker")
		}
		return
	}
	p.Message = x.redactor().Text(p.Message)
	h.reported.Store(&x.attempt)
	if err := beats.Tell(x.attempt, p); err != nil {
		x.log().Debug("it could not be told how far the step is", "error", err)
	}
}
