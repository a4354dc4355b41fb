package worker

import (
	"context"
	"time"

	"github.com/stepjet/stepjet/internal/observer"
)

// unwind is how long handlers may take to return once they have been cancelled for the worker's end.
const unwind = 2 * time.Second

// Run registers the worker's tools, takes steps and executes them until ctx ends; then it drains and returns nil. It
// waits, and says so once, as long as no orchestrator answers. A worker runs once.
//
// Draining means: ask for no more steps, finish those that were handed out, record their results. After
// Config.DrainTimeout the handlers that still run are cancelled and their steps left to other workers, without a
// record, so that no attempt is spent on the shutdown.
//
// Errors: invalid_tool and invalid_config for what Handle and the caller did wrong, permission, no_jetstream or
// whatever else keeps the worker from its tools at the beginning.
func (w *Worker) Run(ctx context.Context) error {
	began := time.Now()
	tools, err := w.begin()
	if err != nil {
		return err
	}
	store, err := w.openStore(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer store.Close()
	store.Requests.Introduce(w.config.Name, w.config.SecretsKey.IDs)
	e := newEngine(w, tools, store)
	e.tell.to = observer.New(w.config.Observer, w.config.Logger)
	defer e.tell.to.Close()
	quiet, hush := context.WithCancel(context.Background())
	e.spawn(func() { e.beat(quiet) })
	e.serving = ctx
	err = e.serveAll(ctx)
	if err == nil {
		e.spawn(func() { newAlive(e, began).run(quiet) })
		close(w.ready)
		e.spawn(func() { e.refresh(ctx) })
		e.watch(ctx)
		e.mends.wait(e.hard) // a tool being registered again may just have got a feed, to be drained like the others
	}
	e.drain()
	hush()
	e.end()
	return unlessEnded(ctx, err)
}

// unlessEnded returns err, or nil where the end of ctx brought it about.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// drain finishes what was handed out, within the drain timeout.
func (e *engine) drain() {
	e.log.Info("draining", "executions", e.open.count(), "timeout", e.config.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), e.config.DrainTimeout)
	defer cancel()
	e.endFeeds(ctx)
	if e.open.wait(ctx) {
		return
	}
	n := e.stopAll(ErrDraining)
	e.log.Warn("the drain timeout has passed; handlers are cancelled and their steps left to other workers", "executions",
		n)
	ctx, cancel = context.WithTimeout(context.Background(), unwind)
	defer cancel()
	e.open.wait(ctx)
}

// endFeeds stops asking for steps of any tool.
func (e *engine) endFeeds(ctx context.Context) {
	var feeds tally
	for _, h := range e.tools {
		if f := h.feed.Load(); f != nil {
			feeds.add()
			e.spawn(func() {
				defer feeds.done()
				f.drain(ctx)
			})
		}
	}
	feeds.wait(ctx)
}

// end stops everything that Run has begun and sees the last acknowledgements off.
func (e *engine) end() {
	ctx, cancel := context.WithTimeout(context.Background(), unwind)
	defer cancel()
	for _, h := range e.tools {
		if h.cancels != nil {
			_ = h.cancels.Unsubscribe() // a connection that is closed has no subscriptions
		}
	}
	e.halt()
	e.pool.close()
	if err := e.w.nc.FlushWithContext(ctx); err != nil {
		e.log.Warn("the last acknowledgements may not have been sent; such steps will be found recorded", "error", err)
	}
	if !e.tasks.wait(ctx) {
		e.log.Error("handlers run on after the worker has ended", "handlers", e.tasks.count())
	}
}
