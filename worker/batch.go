package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/wire"
)

// batch is several steps in one call of a handler. Each step is an execution with its own lease, claim, clock, cancel
// and record; what they share is the call, and the slot that it takes. The call's context ends when the last of the
// steps has come to its own end.
type batch struct {
	g     *gatherer
	key   string // what its calls have in common
	steps []*execution
	calls []call // of steps, in the same order
	items int

	due   bool        // it has waited long enough, or is full; guarded by gatherer.mu, as is all above until it starts
	timer *time.Timer // nil for a step that is executed alone

	info    Info
	secrets *wire.Redactor // of all steps
	base    context.Context
	cancel  context.CancelCauseFunc
	ctx     batchContext
	unhook  []func() bool // of each step's context
	left    atomic.Int32  // steps that have not come to an end
	handler atomic.Int32  // as in execution
	parts   atomic.Int32  // what keeps the slot: the call, and each step until its record stands
}

// run is what the batch's goroutine does.
func (b *batch) run() {
	defer b.leave()
	if b.claim(); b.admit(time.Now()) {
		b.call()
	}
}

// claiming bounds how many claims of a batch are made at once.
const claiming = 32

// claim claims the steps of an at_most_once tool, and leaves those out that it may not execute. A redelivered one has
// its claim already.
func (b *batch) claim() {
	var group errgroup.Group
	group.SetLimit(claiming)
	for _, x := range b.steps {
		if x.step.Claim != "" && x.delivered <= 1 && x.waiting() {
			group.Go(func() error { x.claim(); return nil })
		}
	}
	_ = group.Wait()
}

// admit takes the steps in that may still begin and starts their clocks. It reports false if there is none.
func (b *batch) admit(now time.Time) bool {
	var steps []*execution
	var calls []call
	for i, x := range b.steps {
		if x.admitted(now) {
			steps, calls = append(steps, x), append(calls, b.calls[i])
		}
	}
	b.steps, b.calls = steps, calls
	if len(steps) == 0 {
		return false
	}
	b.items = 0
	for _, c := range calls {
		b.items += len(c.items)
	}
	b.base, b.cancel = context.WithCancelCause(context.Background())
	b.describe()
	b.ctx = batchContext{stepContext{b.base, &b.info, nil}, b}
	b.left.Store(int32(len(steps)))
	b.parts.Store(int32(len(steps)) + 1)
	for _, x := range steps {
		x.batch = b
		x.began.Store(x.e.clock.since(now))
		x.atWork()
		b.unhook = append(b.unhook, context.AfterFunc(x.base, func() { b.ended(context.Cause(x.base)) }))
	}
	return true
}

// waiting reports whether a step that was gathered has not come to an end yet, cancelled or without its lease.
func (x *execution) waiting() bool { return !x.decided.Load() && x.base.Err() == nil }

// admitted reports whether a step of a batch may begin now. One that may not goes its own way.
func (x *execution) admitted(now time.Time) bool {
	switch {
	case !x.waiting() || x.lapsed(now):
		x.leave()
	case x.late(now):
		x.e.spawn(func() { defer x.leave(); x.leaveToOwner() })
	case !x.startClock(now):
		x.fail(deadlinePassed())
		x.leave()
	default:
		return true
	}
	return false
}

// describe fills in what the handler is told: all about a step that is alone, else what all steps have in common.
func (b *batch) describe() {
	contexts := make([]wire.Context, len(b.steps))
	for i, x := range b.steps {
		contexts[i] = x.context()
	}
	b.secrets = wire.NewRedactor(contexts...)
	b.info = b.steps[0].info
	if len(b.steps) == 1 {
		return
	}
	b.info = Info{Tool: b.info.Tool, Worker: b.info.Worker, Deadline: b.info.Deadline}
	for _, x := range b.steps {
		if d := x.info.Deadline; d.IsZero() || b.info.Deadline.IsZero() {
			b.info.Deadline = time.Time{}
		} else if d.After(b.info.Deadline) {
			b.info.Deadline = d
		}
	}
}

// stepsOfItems tells of each item which step it belongs to.
func (b *batch) stepsOfItems() []Info {
	all := make([]Info, 0, b.items)
	for i, x := range b.steps {
		for range b.calls[i].items {
			all = append(all, x.info)
		}
	}
	return all
}

func (b *batch) call() {
	invoke(&b.ctx, b.g.f.tool.handler, join(b.g.f.tool.batch.Argument, b.calls), b)
}

// returned decides every step by what the handler returned for its items.
func (b *batch) returned(out Output, err error) {
	for _, x := range b.steps {
		x.workDone()
	}
	if err != nil {
		f := b.secrets.Error(describe(err))
		for _, x := range b.steps {
			x.returned(Output{}, f)
		}
		return
	}
	items, f := readEnvelope(out.Body, b.items)
	if f != nil {
		for _, x := range b.steps {
			x.fail(f)
		}
		return
	}
	tenant := func(i int) string { return b.steps[i].attempt.Tenant }
	_, how := b.g.settings()
	for i, v := range fan(b.calls, items, how, func(i, other int) bool { return tenant(i) == tenant(other) }) {
		if v.err != nil {
			b.steps[i].returned(Output{}, b.secrets.Error(v.err))
		} else {
			b.steps[i].returned(Output{Body: v.body}, nil)
		}
	}
}

// ended hears that one step has come to its end: by a timeout, a cancel, a lost lease. With the last the call is over.
func (b *batch) ended(why error) {
	if b.left.Add(-1) > 0 {
		return
	}
	b.cancel(why)
	if errors.Is(why, ErrTimeout) || errors.Is(why, ErrCancelled) {
		time.AfterFunc(abandonAfter, b.abandon)
	}
}

// abandon counts a handler that ignores the end of its context. Where the last slot is lost to such handlers, the steps
// that wait for one are left to other workers.
func (b *batch) abandon() {
	if b.handler.CompareAndSwap(handlerRuns, handlerAbandoned) && b.g.e.abandoned(b.g.f.tool, b.log()) {
		b.g.leaveToOthers()
	}
}

// leave ends the batch, whichever way the call went.
func (b *batch) leave() {
	if b.handler.Swap(handlerReturned) == handlerAbandoned {
		b.g.e.recovered(b.g.f.tool, b.log())
	}
	for _, stop := range b.unhook {
		stop()
	}
	if b.cancel != nil {
		b.cancel(errDone)
	}
	for _, x := range b.steps {
		x.leave()
	}
	b.part()
}

// part frees the slot when the last of its parts has ended.
func (b *batch) part() {
	if b.parts.Add(-1) <= 0 {
		b.g.give()
	}
}

func (b *batch) redactor() *wire.Redactor { return b.secrets }

func (b *batch) log() *slog.Logger {
	return b.g.e.log.With("tool", b.g.f.tool.def.Name, "steps", len(b.steps), "items", b.items)
}
