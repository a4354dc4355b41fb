package client

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// pending is a run whose end somebody may want to know. All handles of one run share it.
type pending struct {
	run  subjects.Run
	done chan struct{} // closed once one of the next three is set

	raw []byte           // the outcome's JSON, as it was announced; read by the waiter
	out *outcome.Outcome // the outcome, as it was read from history
	err error            // no outcome will come to light here

	// Somebody else may have submitted it: nobody tells this client, and it may not be there at all.
	foreign atomic.Bool

	// Guarded by waits.mu.
	digest     string // of the plan that was submitted; "" where only the id is known
	generation uint64 // of that plan: a rejection with a lower one is of an earlier plan; 0 where it isn't known
	rejection  uint64 // the generation of the rejection that it came to, if it is one
	early      []byte // a rejection that was announced before the plan's acknowledgement came, and its generation
	earlyOf    uint64
	odd        int // reads that found an earlier plan's rejection, and no plan
	waiters    int
	queued     bool // it stands in a queue, or the loop has it in hand
	reads      int  // since it was queued
	hasty      bool // its end may have been announced already
}

// pauses are the times between two reads of the history for one run. The last one is repeated. A notice is lost with a
// connection, after which all is read at once, or with an orchestrator, whose share moves on after seconds; so the
// first read need not come while most runs still go on.
var pauses = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second}

// read is a run whose history is to be read at a time.
type read struct {
	p  *pending
	at time.Time
}

// waits holds all runs that this client may be told about.
//
// The map keeps its entries weakly: who submits a run and drops the handle leaves nothing behind, even if the notice is
// never seen. The queues hold those that somebody waits for. All entries of one queue pause equally long, so each queue
// is in order of time and adding or taking is O(1), with no timer for a single run.
type waits struct {
	mu     sync.Mutex
	runs   map[string]weak.Pointer[pending] // by run token
	queues [][]read                         // by index into pauses
	kick   chan struct{}                    // something is to be read at once
}

func newWaits() *waits {
	return &waits{runs: map[string]weak.Pointer[pending]{}, queues: make([][]read, len(pauses)), kick: make(chan struct{}, 1)}
}

// enter returns the entry of a run that is not over yet, a new one if there is none.
func (w *waits) enter(run subjects.Run) *pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.runs[run.ID].Value(); p != nil {
		return p
	}
	return w.add(run)
}

// add makes a new entry. w.mu is held.
func (w *waits) add(run subjects.Run) *pending {
	p := &pending{run: run, done: make(chan struct{})}
	w.runs[run.ID] = weak.Make(p)
	runtime.AddCleanup(p, w.forget, run.ID)
	return p
}

// forget removes an entry that nobody holds any more.
func (w *waits) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ptr, ok := w.runs[id]; ok && ptr.Value() == nil {
		delete(w.runs, id)
	}
}

// resolve hands the announced outcome of a run to whoever waits; a run that is not known here is ignored. So is the
// rejection of an earlier plan of its id.
func (w *waits) resolve(id string, raw []byte) {
	w.mu.Lock()
	p := w.runs[id].Value()
	w.mu.Unlock()
	if p == nil {
		return
	}
	if generation, rejected := rejectionOf(raw); rejected {
		w.reject(p, generation, raw)
		return
	}
	w.finish(p, func() { p.raw = raw })
}

// finish sets what the run came to; the first caller wins.
func (w *waits) finish(p *pending, set func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(p, set)
}

// end is finish where w.mu is held.
func (w *waits) end(p *pending, set func()) {
	select {
	case <-p.done:
		return
	default:
	}
	set()
	close(p.done)
	if w.runs[p.run.ID].Value() == p {
		delete(w.runs, p.run.ID)
	}
}

// join counts a waiter and sees to it that the history is read now and then, at once for a run whose end may not be
// told.
func (w *waits) join(p *pending, now time.Time) {
	w.mu.Lock()
	p.waiters++
	first := !p.queued
	p.queued = true
	at := now.Add(pauses[0])
	soon := p.foreign.Load() || p.hasty
	if soon {
		at = now
	}
	if first {
		w.queues[0] = append(w.queues[0], read{p, at})
	}
	w.mu.Unlock()
	if first && soon {
		w.wake()
	}
}

func (w *waits) leave(p *pending) {
	w.mu.Lock()
	p.waiters--
	w.mu.Unlock()
}

// hurry makes a run's next read due now.
func (w *waits) hurry(id string) {
	w.mu.Lock()
	p := w.runs[id].Value()
	for level := range w.queues {
		q := w.queues[level]
		for i := range q {
			if q[i].p == p && p != nil {
				// It goes to the front, so that the queue stays in order of time.
				copy(q[1:i+1], q[:i])
				q[0] = read{p, time.Time{}}
			}
		}
	}
	w.mu.Unlock()
	w.wake()
}

func (w *waits) wake() {
	select {
	case w.kick <- struct{}{}:
	default: // it is awake already
	}
}

// due takes at most limit runs whose time has come. Those that are over, or that nobody waits for any more, drop out.
func (w *waits) due(now time.Time, limit int) []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*pending
	for level, q := range w.queues {
		n := 0
		for ; n < len(q) && len(out) < limit && !q[n].at.After(now); n++ {
			p := q[n].p
			if isDone(p) || p.waiters == 0 {
				p.queued, p.reads = false, 0
				continue
			}
			p.reads++
			out = append(out, p)
		}
		w.queues[level] = slices.Delete(q, 0, n)
	}
	return out
}

// again queues a run that due gave for its next read.
func (w *waits) again(p *pending, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	level := min(p.reads, len(pauses)-1)
	w.queues[level] = append(w.queues[level], read{p, now.Add(pauses[level])})
}

// all makes every run due now: after a reconnect any notice may be lost.
func (w *waits) all() {
	w.mu.Lock()
	for level := range w.queues {
		for i := range w.queues[level] {
			w.queues[level][i].at = time.Time{}
		}
	}
	w.mu.Unlock()
	w.wake()
}

func isDone(p *pending) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
