package worker

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// answersApart is the least time between two beats, however many ask for them.
const answersApart = 250 * time.Millisecond

// alive says that a worker lives: when its tools are served, every few seconds, when somebody asks, and when it goes. Nothing
// rests on it: a beat that is lost is made up for by the next.
type alive struct {
	e       *engine
	beats   kv.Beats
	about   tool.Worker // what doesn't change
	began   time.Time
	every   time.Duration
	asked   chan struct{} // somebody wants a beat now
	refused uint64        // how often the connection had been lost, and one more, when the server refused a beat; 0: it did not
}

func newAlive(e *engine, began time.Time) *alive {
	host, _ := os.Hostname() // without a name it says none
	return &alive{
		e: e, beats: e.store.Beats(), began: began, every: e.w.beatEvery, asked: make(chan struct{}, 1),
		about: tool.Worker{Version: version.Stepjet(), Host: text.Clip(host, maxName), PID: os.Getpid(), Tenants: tenantsOf(e.tools)},
	}
}

// tenantsOf returns the tenants that may use tools, where each is for some tenants alone.
func tenantsOf(tools []*hosted) []string {
	var all []string
	for _, h := range tools {
		if len(h.def.Tenants) == 0 {
			return nil
		}
		all = append(all, h.def.Tenants...)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// run says it until ctx ends, and then that the worker is gone.
func (a *alive) run(ctx context.Context) {
	stop, err := a.beats.Asked(func() {
		select {
		case a.asked <- struct{}{}:
		default: // one beat is as good for all who ask
		}
	})
	if err != nil {
		a.e.log.Debug("nobody can ask whether this worker lives; it says so every few seconds", "error", err)
		stop = func() {}
	}
	defer stop()
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	leaving := a.e.serving.Done()
	for {
		a.say(false)
		last := time.Now()
		select {
		case <-tick.C:
		case <-leaving:
			leaving = nil // it is told once, and again with what follows
		case <-a.asked:
			backoff.Pause(ctx, answersApart-time.Since(last))
		case <-ctx.Done():
			a.say(true)
			return
		}
	}
}

// say says it once. Where the server refuses that, since permissions are of before there were beats, it is left until
// there is another connection, so that no log fills up.
func (a *alive) say(gone bool) {
	life := a.e.w.nc.Stats().Reconnects + 1
	if a.refused == life {
		return
	}
	if err := a.beats.Refused(a.e.config.Name); err != nil {
		a.refused = life
		a.e.log.Warn("this worker may not say that it lives, so it is missing from stepjet workers; it works all the same",
			"error", err, "hint", "print its permissions anew with stepjet acl worker")
		return
	}
	if err := a.beats.Say(a.e.config.Name, a.beat(gone)); err != nil {
		a.e.log.Debug("a beat could not be sent", "error", err)
	}
}

func (a *alive) beat(gone bool) wire.Beat {
	b := wire.Beat{Worker: a.about, Up: time.Since(a.began), Gone: gone}
	if gone {
		return b
	}
	w := &b.Worker
	w.Leaving = a.e.serving.Err() != nil
	w.Tools = make([]tool.WorkerTool, 0, len(a.e.tools))
	for _, h := range a.e.tools {
		t := tool.WorkerTool{
			Tool: h.def.Name, Slots: h.slots, Done: h.done.Load(), Failed: h.failed.Load(),
		}
		if h.gate != nil && h.gate.Closed() {
			t.Held, t.Why = true, h.gate.Why()
		}
		if f := h.feed.Load(); f != nil {
			t.Busy = f.taken(h.slots)
		}
		w.Busy, w.Done, w.Failed = w.Busy+t.Busy, w.Done+t.Done, w.Failed+t.Failed
		w.Tools = append(w.Tools, t)
	}
	return b
}
