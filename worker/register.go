package worker

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

const (
	// registering bounds how many tools are registered at once.
	registering = 8
	// refreshEvery is how long nothing may come for a tool before the worker makes sure that its consumer is still
	// there.
	refreshEvery = 30 * time.Second
	// refreshing bounds for how many tools it makes sure each time.
	refreshing = 16
	// restorePause is how long a tool whose consumer was gone is left alone after it was registered again.
	restorePause = 250 * time.Millisecond
	// patience is how long nobody may answer before the worker says that it waits.
	patience = 2 * time.Second
)

// openStore binds to what an orchestrator has set up, and waits for that where there is nothing yet.
func (w *Worker) openStore(ctx context.Context) (*kv.Store, error) {
	said := false
	for waits := retries(); ; {
		store, err := kv.Open(ctx, w.nc)
		if err == nil || ctx.Err() != nil || fault.CodeOf(err) != fault.NotReady {
			return store, err
		}
		if !said {
			w.config.Logger.Warn("Stepjet is not set up on this server yet; waiting for an orchestrator", "error", err)
			said = true
		}
		if !backoff.Pause(ctx, waits.Next()) {
			return nil, context.Cause(ctx)
		}
	}
}

// serveAll registers every tool and begins to take its steps.
func (e *engine) serveAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(registering)
	for _, h := range e.tools {
		group.Go(func() error { return e.serve(ctx, h) })
	}
	return group.Wait()
}

// serve registers one tool and begins to take its steps. A feed that it had before must have been drained.
func (e *engine) serve(ctx context.Context, h *hosted) error {
	t, err := e.register(ctx, h)
	if err != nil {
		return err
	}
	f := &feed{tool: h, shard: t.Shard, ackWait: t.AckWait, pulling: make(chan struct{})}
	if f.ackWait <= 0 {
		f.ackWait = defaultAckWait
	}
	if h.batch != nil {
		f.gather = newGatherer(e, f, t.Contract)
	}
	e.pulse.serve(f.ackWait)
	if h.cancels == nil {
		if h.cancels, err = e.w.nc.Subscribe(subjects.CancelFilter(h.def.Name), e.onCancel); err != nil {
			return kv.Fault(err)
		}
	}
	e.timed.Do(func() { e.tellTime(ctx, f) }) // before anything comes that may have waited for too long
	most := h.slots
	if f.gather != nil || h.gate != nil {
		most = 0 // until it knows whose turn it is, or that its gate is open
	}
	f.puller, err = e.store.Queue.PullUpTo(e.hard, t, h.slots, most, func(d *kv.Delivery) { e.accept(f, d) })
	if err != nil {
		return err
	}
	f.puller.Lost(func() { e.consumerGone(e.serving, h) })
	close(f.pulling)
	h.gate.attend(h.def.Name, f.puller, h.slots)
	if f.gather != nil {
		e.spawn(func() { f.gather.turn.run(e.hard) })
	}
	h.feed.Store(f)
	e.log.Info("taking steps", "tool", h.def.Name, "slots", h.slots, "limit", t.Contract.Limit)
	return nil
}

// register asks an orchestrator to register the tool, as long as it takes until one answers.
func (e *engine) register(ctx context.Context, h *hosted) (tool.Registered, error) {
	raw, err := json.Marshal(h.def)
	if err != nil {
		return tool.Registered{}, inTool(h.def.Name, err)
	}
	note := time.AfterFunc(patience, func() {
		e.lonely.Do(func() {
			e.log.Warn("no orchestrator answers; the worker waits to register its tools", "tool", h.def.Name)
		})
	})
	defer note.Stop()
	t, err := e.store.Requests.RequestRegister(ctx, raw)
	for waits := retries(); fault.CodeOf(err) == fault.NotReady && ctx.Err() == nil; {
		e.log.Warn("the tool can't be registered yet; trying again", "tool", h.def.Name, "error", err)
		if !backoff.Pause(ctx, waits.Next()) {
			break
		}
		t, err = e.store.Requests.RequestRegister(ctx, raw)
	}
	for _, warning := range t.Warnings {
		if warning.Code == fault.Sealed { // it is about the worker
			e.unsealed.Do(func() { e.log.Warn(warning.Message, "hint", warning.Hint) })
			continue
		}
		e.log.Warn("the tool was registered, but a part of its definition is of no use", "tool", h.def.Name,
			"place", warning.Path, "problem", warning.Message, "hint", warning.Hint)
	}
	return t, err
}

// watch registers tools again that vanish from the registry, or that were put into another shard, until ctx ends.
func (e *engine) watch(ctx context.Context) {
	for waits := retries(); ctx.Err() == nil; {
		err := e.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := waits.Next()
		e.log.Warn("the tool registry can't be watched; trying again soon", "error", err, "wait", wait)
		backoff.Pause(ctx, wait)
	}
}

func (e *engine) watchOnce(ctx context.Context) error {
	hosted := make(map[string]*hosted, len(e.tools))
	unseen := make(map[string]bool, len(e.tools))
	for _, h := range e.tools {
		hosted[h.def.Name], unseen[h.def.Name] = h, true
	}
	each := func(t tool.Registered, deleted bool) {
		h := hosted[t.Name]
		if h == nil {
			return
		}
		delete(unseen, t.Name)
		f := h.feed.Load()
		if deleted || f != nil && f.shard != t.Shard {
			e.mend(ctx, h)
		} else if f != nil && f.gather != nil {
			f.gather.follow(t.Contract)
		}
	}
	ready := func() {
		for name := range unseen {
			e.mend(ctx, hosted[name])
		}
	}
	return e.store.Registry.WatchTools(ctx, each, ready)
}

// mend registers a tool again, in a goroutine of its own, unless that is going on already.
func (e *engine) mend(ctx context.Context, h *hosted) {
	if !h.mending.CompareAndSwap(false, true) {
		return
	}
	e.log.Warn("the tool has vanished from the registry; registering it again", "tool", h.def.Name)
	e.mends.add()
	e.spawn(func() {
		defer e.mends.done()
		defer h.mending.Store(false)
		if f := h.feed.Load(); f != nil {
			e.endFeed(ctx, f)
		}
		for waits := retries(); ctx.Err() == nil; {
			err := e.serve(ctx, h)
			if err == nil || ctx.Err() != nil {
				return
			}
			wait := waits.Next()
			e.log.Error("the tool can't be registered again; trying on", "tool", h.def.Name, "error", err, "wait", wait)
			backoff.Pause(ctx, wait)
		}
	})
}

// endFeed stops asking for steps; it gives up waiting for those under way after a lease's time at most.
func (e *engine) endFeed(ctx context.Context, f *feed) {
	ctx, cancel := context.WithTimeout(ctx, f.ackWait)
	defer cancel()
	f.drain(ctx)
}

// drain asks for no more steps; a batch waits for none either.
func (f *feed) drain(ctx context.Context) {
	if f.gather != nil {
		f.gather.drain()
	}
	f.puller.Drain(ctx)
}

// refresh sees to tools for which nothing has come for a while, until ctx ends: perhaps somebody deleted their
// consumer.
func (e *engine) refresh(ctx context.Context) {
	ticker := time.NewTicker(e.w.refresh)
	defer ticker.Stop()
	for next := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if f := e.tools[next%len(e.tools)].feed.Load(); f != nil {
			e.tellTime(ctx, f)
		}
		// Some at a time: a consumer that is gone is noticed by who asks it (consumerGone); this is for what that can't
		// see.
		for range min(refreshing, len(e.tools)) {
			h := e.tools[next%len(e.tools)]
			next++
			if f := h.feed.Load(); f != nil && !f.busy.Swap(false) && !h.mending.Load() {
				e.restore(ctx, h)
			}
		}
	}
}

// consumerGone has a tool registered again at once whose consumer somebody deleted. It does not wait.
func (e *engine) consumerGone(ctx context.Context, h *hosted) {
	if h.mending.Load() || !h.restoring.CompareAndSwap(false, true) {
		return
	}
	e.spawn(func() {
		defer h.restoring.Store(false)
		select {
		case e.restores <- struct{}{}:
			defer func() { <-e.restores }()
		case <-ctx.Done():
			return
		}
		e.log.Warn("the tool's consumer is gone; registering the tool again", "tool", h.def.Name)
		e.restore(ctx, h)
		backoff.Pause(ctx, restorePause)
	})
}

// restore has a tool registered as it stands in the registry, which creates what is missing of it and changes nothing
// else: the definition may be another worker's newer one.
func (e *engine) restore(ctx context.Context, h *hosted) {
	ctx, cancel := context.WithTimeout(ctx, e.w.refresh)
	defer cancel()
	_, err := e.store.Requests.RequestRestore(ctx, h.def.Name)
	if fault.CodeOf(err) == fault.InvalidTool { // an orchestrator of before
		var t tool.Registered
		if t, err = e.store.Registry.Tool(ctx, h.def.Name); err == nil {
			var raw []byte
			if raw, err = json.Marshal(t.Definition); err == nil {
				_, err = e.store.Requests.RequestRegister(ctx, raw)
			}
		}
	}
	if err != nil {
		e.log.Debug("an idle tool could not be looked after", "tool", h.def.Name, "error", err)
	}
}
