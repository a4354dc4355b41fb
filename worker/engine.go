package worker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/semaphore"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// engine is a worker that runs: all that exists only between the beginning and the end of Run.
type engine struct {
	w      *Worker
	config Config
	log    *slog.Logger
	tools  []*hosted
	store  *kv.Store
	inline int                 // largest result, in bytes, that travels in its record
	memory *semaphore.Weighted // for large arguments
	pool   *pool
	pulse  *pulse
	clock  *clock
	tell   teller

	promises promises

	serving context.Context // ends when no more steps are to be taken
	hard    context.Context // ends when nothing more is to be written
	halt    context.CancelFunc

	mu   sync.Mutex
	live map[subjects.Attempt]*execution // guarded by mu, as are their leases

	open     tally         // executions without a decision, or whose record isn't written yet
	tasks    tally         // goroutines
	mends    tally         // tools being registered again
	restores chan struct{} // room for tools whose consumers are being made again

	lonely   sync.Once // "no orchestrator answers" is said once
	unsealed sync.Once // so is that the worker lacks the key that secrets are sealed to
	timed    sync.Once // the servers' time is asked for before the first tool's steps
}

// feed is one tool's stream of steps. A tool that vanished from the registry gets a new one.
type feed struct {
	tool    *hosted
	shard   int
	ackWait time.Duration
	gather  *gatherer // nil for a tool that takes no batches
	puller  *kv.Puller
	pulling chan struct{}             // closed once puller is set
	busy    atomic.Bool               // something has come since the last look
	woken   atomic.Pointer[time.Time] // what was asked for before may be older than its lease; nil: nothing is
}

// release gives a slot back.
func (f *feed) release() {
	<-f.pulling
	f.puller.Release()
}

// refuse gives back what a delivery brought that comes to no execution.
func (f *feed) refuse(d *kv.Delivery) {
	if !d.Extra {
		f.release()
	}
}

// taken returns how many of so many slots are taken.
func (f *feed) taken(slots int) int {
	select {
	case <-f.pulling:
		return slots - f.puller.Free()
	default: // it has not begun
		return 0
	}
}

// headroom is what a message needs besides its body: headers, subject, protocol. The same as for plans.
const headroom = 16 << 10

func newEngine(w *Worker, tools []*hosted, store *kv.Store) *engine {
	e := &engine{
		w: w, config: w.config, log: w.config.Logger.With("worker", w.config.Name), tools: tools, store: store,
		inline: inlineLimit(store.MaxPayload()), memory: semaphore.NewWeighted(w.config.ArgumentMemory),
		pulse: newPulse(), clock: newClock(), live: map[subjects.Attempt]*execution{},
		restores: make(chan struct{}, registering),
	}
	e.pool = newPool(&e.tasks)
	e.hard, e.halt = context.WithCancel(context.Background())
	return e
}

// inlineLimit returns the largest result that fits into a record, on a server that takes messages of maxPayload bytes.
func inlineLimit(maxPayload int64) int {
	if fits := maxPayload - headroom; maxPayload > 0 && fits < wire.InlineLimit {
		return int(max(fits, 0))
	}
	return wire.InlineLimit
}

// spawn runs f in a goroutine that the end of Run waits for.
func (e *engine) spawn(f func()) {
	e.tasks.add()
	go func() {
		defer e.tasks.done()
		f()
	}()
}

// onCancel hears of a cancelled attempt. Every worker of the tool hears it; mostly it is another's.
func (e *engine) onCancel(m *nats.Msg) {
	a, ok := subjects.ParseCancel(m.Subject)
	if !ok || !wire.KindEvent.Known(m.Header) {
		return
	}
	e.mu.Lock()
	x := e.live[a]
	e.mu.Unlock()
	if x != nil {
		x.cancelled()
	}
}

// stopAll ends the context of every handler that still runs.
func (e *engine) stopAll(why error) int {
	e.mu.Lock()
	running := make([]*execution, 0, len(e.live))
	for _, x := range e.live {
		running = append(running, x)
	}
	e.mu.Unlock()
	for _, x := range running {
		x.cancel(why)
	}
	return len(running)
}
