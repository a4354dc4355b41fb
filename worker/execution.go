package worker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// execution is one attempt in the hands of this worker, from its delivery until its record stands.
//
// Two things end independently: the goroutine that runs the handler, and the decision (the record, or none where the
// step is left to others). Whoever wins decided makes the decision: the handler by returning, the timer, a cancel. The
// slot is free once both have ended.
type execution struct {
	e    *engine
	feed *feed

	attempt   subjects.Attempt
	step      wire.Step
	seq       uint64 // of the message in its step stream
	delivered int
	args      []byte
	doubted   bool     // its lease may have run out before it came (doubtful)
	mayStand  bool     // it may have a record already
	promise   *promise // of the run's definition, where that is not this worker's
	heavy     int64    // bytes of argument memory held

	slot   bool   // it has a slot of its own
	batch  *batch // nil until it is in one that has begun
	info   Info
	opened atomic.Pointer[wire.Context] // the step's context, once its secrets are opened
	base   context.Context              // ends with cancel
	cancel context.CancelCauseFunc
	ctx    stepContext
	timer  *time.Timer // execution timeout; touched by the execution's goroutine alone
	bound  bool        // the deadline of step or run comes before the execution timeout

	asked   time.Time    // it was handed out later than that (kv.Delivery.Asked)
	taken   time.Time    // when it was delivered
	began   atomic.Int64 // when the handler was called, by the engine's clock; 0 before
	decided atomic.Bool
	lost    atomic.Bool // the lease ran out: only a success is still offered
	unheld  atomic.Bool // at some time the lease may have run out (holds)
	handler atomic.Int32
	owing   atomic.Int32
	parts   atomic.Int32
	said    atomic.Pointer[reports] // nil where the handler says nothing of how far it is
	writes  atomic.Pointer[writing] // likewise, of what it is writing
	handing atomic.Pointer[Stream]  // nil where the handler hands over nothing of its answer before that is whole
	nonce   string                  // of the claim that this execution has made before its handler; empty for none

	result wire.Result     // belongs to whoever decided
	waits  backoff.Backoff // between tries to write the record

	leases []*kv.Delivery // guarded by engine.mu; more than one where the attempt was handed out again to this worker
}

// The states of an execution's handler.
const (
	handlerRuns      int32 = iota // it runs, or has still to be called
	handlerAbandoned              // it was given up a while ago and still runs
	handlerReturned
)

func (e *engine) newExecution(f *feed, d *kv.Delivery, a subjects.Attempt, step wire.Step) *execution {
	// A worker had it before, or its owner sent it once more. An owner looks for the message and then for the record: a
	// worker that was just done with it, and takes the message away with the record standing, lets a repair in between.
	mayStand := d.Delivered > 1 || a.Repairs(d.ID)
	x := &execution{
		e: e, feed: f, attempt: a, step: step, seq: d.StreamSeq, delivered: d.Delivered, args: d.Data,
		asked: d.Asked, taken: time.Now(), leases: []*kv.Delivery{d}, mayStand: mayStand, slot: !d.Extra, waits: retries(),
	}
	x.info = Info{
		Tenant: a.Tenant, Run: a.Plain(), Generation: a.Generation, Step: a.Step, Tool: a.Tool, Key: step.Key,
		RetriedKey: step.Retried,
		Attempt:    a.Number, Delivery: d.Delivered, Trace: step.Trace, Worker: e.config.Name,
		Context: step.Context,
	}
	x.base, x.cancel = context.WithCancelCause(context.Background())
	x.ctx = stepContext{x.base, &x.info, x}
	x.parts.Store(2)
	return x
}

// run is what the execution's goroutine does.
func (x *execution) run() {
	if g := x.feed.gather; g != nil {
		g.prepare(x)
		return
	}
	defer x.leave()
	if x.simple() || x.prepare() {
		x.execute()
	}
}

// leave ends the goroutine's part, whichever way the handler went.
func (x *execution) leave() {
	if x.timer != nil {
		x.timer.Stop()
	}
	if r := x.said.Load(); r != nil {
		r.stop()
	}
	if w := x.writes.Load(); w != nil {
		w.stop()
	}
	if s := x.handing.Load(); s != nil {
		s.stop()
	}
	x.cancel(errDone)
	if x.heavy > 0 {
		x.e.memory.Release(x.heavy)
	}
	if x.handler.Swap(handlerReturned) == handlerAbandoned {
		x.e.recovered(x.feed.tool, x.log())
	}
	x.workDone()
	x.drop(false) // whoever got here without a decision has none to make
	x.part()
}

// part frees the slot when the second of the two has ended.
func (x *execution) part() {
	switch {
	case x.parts.Add(-1) > 0:
	case x.batch != nil:
		x.batch.part()
	case x.slot:
		x.feed.release()
	}
}

// execute calls the handler within the time it has.
func (x *execution) execute() {
	now := time.Now()
	if x.base.Err() != nil || x.lapsed(now) {
		return // it is left to the next delivery
	}
	if !x.startClock(now) {
		x.fail(deadlinePassed())
		return
	}
	x.began.Store(x.e.clock.since(now))
	if f := x.unfitArguments(); f != nil {
		x.fail(f)
		return
	}
	if !x.decided.Load() {
		x.call()
	}
}

func deadlinePassed() *fault.Error {
	return fault.New(fault.Timeout, "the step's deadline had passed before its execution began")
}

// ownerPatience is how long after the deadline of a step or run its worker still waits for the owner's word. The owner
// decides such steps and has them cancelled; only where it is away does the worker record the timeout itself.
const ownerPatience = 2 * time.Second

// late reports whether a step has waited too long for a slot to begin now. One that was handed out before had begun.
func (x *execution) late(now time.Time) bool {
	return !x.step.StartBy.IsZero() && x.delivered <= 1 && x.e.clock.until(x.step.StartBy, now) < 0
}

// leaveToOwner gives the owner of the run the time to decide a step that came too late, and then decides it itself.
func (x *execution) leaveToOwner() {
	if backoff.Pause(x.base, x.e.clock.until(x.step.StartBy, time.Now())+ownerPatience) {
		f := fault.New(fault.Timeout, "the step waited longer than its wait_timeout for a slot")
		f.Retryable = false
		x.fail(f.WithHint("start more workers, raise the tool's limit, or let its steps wait longer"))
	}
}

// startClock arms the timer; it reports false if no time is left.
func (x *execution) startClock(now time.Time) bool {
	left, limited := x.step.Timeout, x.step.Timeout > 0
	if !x.step.Deadline.IsZero() {
		if until := x.e.clock.until(x.step.Deadline, now); !limited || until <= left {
			left, limited, x.bound = until, true, true
		}
	}
	if !limited {
		return true
	}
	if left <= 0 {
		return false
	}
	x.info.Deadline = now.Add(left)
	if x.bound {
		left += ownerPatience
	}
	x.timer = time.AfterFunc(left, x.timeout)
	return true
}

func (x *execution) call() {
	x.atWork()
	invoke(&x.ctx, x.feed.tool.handler, x.args, x)
}

// returned decides the attempt by what the handler returned.
func (x *execution) returned(out Output, err error) {
	x.workDone()
	var asks *inquiry
	switch {
	case err == nil:
		x.succeed(out)
	case errors.As(err, &asks):
		x.decide(wire.Result{Asks: asks.asks})
	case x.lost.Load() || errors.Is(context.Cause(x.base), ErrDraining):
		x.drop(false) // the error is ours, not the tool's: another worker will do better
	default:
		x.fail(describe(err))
	}
}

// succeed records what the tool returned, if it can be a value: JSON or text, of 64 MiB at most.
func (x *execution) succeed(out Output) {
	value, f := plan.Output(out.Body, out.Text)
	if f == nil {
		f = x.brokenPromise(value)
	}
	if f != nil {
		x.fail(f)
		return
	}
	x.decide(typed(wire.Result{Body: out.Body, Text: out.Text}, out))
}

// fail is decide for an error.
func (x *execution) fail(err *fault.Error) bool { return x.decide(wire.Result{Error: err}) }

// decide records the result, unless the attempt has been decided here before. It reports whether it was first.
func (x *execution) decide(r wire.Result) bool {
	if !x.decided.CompareAndSwap(false, true) {
		return false
	}
	r.Worker, r.Trace, r.Deliveries = x.e.config.Name, x.step.Trace, x.delivered
	r.Started, r.Ended = x.times(time.Now())
	count := &x.feed.tool.done
	if r.Error != nil {
		count = &x.feed.tool.failed
		r.Error = clipped(x.redactor().Error(r.Error)) // in this order: half a secret would not be found
	}
	count.Add(1)
	if g := x.feed.gather; g != nil {
		g.decided()
	}
	x.result = r
	x.e.tell.execute(x, false)
	x.record()
	return true
}

// times returns when the execution began, or the step came where it did not begin, and when it ended, in the servers'
// time.
func (x *execution) times(now time.Time) (started, ended time.Time) {
	began := x.e.clock.since(x.taken)
	if at := x.began.Load(); at != 0 {
		began = at
	}
	ended = x.e.clock.at(now)
	return ended.Add(-time.Duration(x.e.clock.since(now) - began)), ended
}

// drop leaves the attempt without a record: somebody else has decided it (ack), or is to.
func (x *execution) drop(ack bool) {
	if !x.decided.CompareAndSwap(false, true) {
		return
	}
	if g := x.feed.gather; g != nil {
		g.decided()
	}
	x.e.tell.execute(x, true)
	x.settle(ack)
}
