package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// abandonAfter is how long a handler whose context has ended may take to return before it counts as abandoned.
const abandonAfter = time.Second

// timeout ends an execution whose time has run out. The record doesn't wait for the handler, which may never return.
func (x *execution) timeout() {
	if x.lost.Load() {
		x.drop(false) // another worker has the step, and all the time it needs
		x.cancel(ErrTimeout)
		return
	}
	if x.fail(x.outOfTime()) {
		x.giveUp(ErrTimeout)
	}
}

// outOfTime says what a timeout means: for an at_most_once tool nobody knows what has happened.
func (x *execution) outOfTime() *fault.Error {
	what := "the execution took longer than its deadline allowed"
	if t := x.step.Timeout; t > 0 && !x.bound {
		what = "the execution took longer than " + t.String()
	}
	if x.step.Claim != "" {
		return fault.New(fault.OutcomeUnknown, "%s, so its effect is unknown", what)
	}
	return fault.New(fault.Timeout, "%s", what)
}

// cancelled ends an execution whose step was cancelled. The orchestrator has decided the attempt already; if it has
// not, this does.
func (x *execution) cancelled() {
	if x.lost.Load() {
		x.drop(false)
		x.cancel(ErrCancelled)
		return
	}
	if x.fail(fault.New(fault.Cancelled, "the step was cancelled while it ran")) {
		x.giveUp(ErrCancelled)
	}
}

// giveUp tells the handler that it is over, and looks a while later whether it has listened. In a batch the others go
// on.
func (x *execution) giveUp(why error) {
	x.cancel(why)
	if x.feed.gather == nil {
		time.AfterFunc(abandonAfter, x.abandon)
	}
}

// abandon counts a handler that ignores the end of its context.
func (x *execution) abandon() {
	if x.handler.CompareAndSwap(handlerRuns, handlerAbandoned) {
		x.e.abandoned(x.feed.tool, x.log())
	}
}

// abandoned counts a handler that was given up and runs on. It reports whether that was the tool's last slot.
func (e *engine) abandoned(h *hosted, log *slog.Logger) (last bool) {
	e.w.abandoned.Add(1)
	stuck := int(h.stuck.Add(1))
	level := slog.LevelWarn
	if stuck >= h.slots {
		level = slog.LevelError
	}
	log.Log(context.Background(), level,
		"a handler runs on after its execution was given up; its slot stays taken until it returns",
		"taken_slots", stuck, "slots", h.slots)
	return stuck >= h.slots
}

func (e *engine) recovered(h *hosted, log *slog.Logger) {
	e.w.abandoned.Add(-1)
	h.stuck.Add(-1)
	log.Info("an abandoned handler has returned; its slot is free again")
}

// leaseLost ends an execution whose lease this worker could not keep. Nothing is decided: the step is redelivered.
func (x *execution) leaseLost() {
	x.lost.Store(true)
	x.log().Warn("the lease ran out; the handler is cancelled and the step left to another worker")
	x.cancel(ErrLeaseLost)
}

// redactor knows what no error and no log may hold.
func (x *execution) redactor() *wire.Redactor { return wire.NewRedactor(x.context()) }

// context is the step's out-of-band context, as far as it could be opened.
func (x *execution) context() wire.Context {
	if c := x.opened.Load(); c != nil {
		return *c
	}
	return x.step.Context
}

func (x *execution) log() *slog.Logger {
	log := x.e.log.With("tool", x.attempt.Tool, "tenant", x.attempt.Tenant, "run", x.attempt.Plain(),
		"step", x.attempt.Step, "attempt", x.attempt.Number, "delivery", x.delivered)
	if id := x.step.Trace.SampledID(); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}
