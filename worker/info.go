package worker

import (
	"context"
	"errors"
	"time"

	"github.com/stepjet/stepjet/wire"
)

// Context is the out-of-band context of a step: what its submitter handed to the tools beside their arguments. It
// prints, logs and marshals with the values of its secrets hidden; Get returns them.
type Context = wire.Context

// Trace is the W3C trace context of a step, Parent and State as the headers traceparent and tracestate have them; both
// are empty where the plan came without.
type Trace = wire.Trace

// Info is what a handler can know about the step it runs.
type Info struct {
	Tenant     string
	Run        string // the run id as its submitter wrote it
	Generation uint64 // tells runs apart that used the same id one after the other
	Step       string // the step's id; "id=i" for the i-th item of a for_each
	Tool       string
	// Key is the idempotency key: the same for all attempts and deliveries of the step, different for all others. Hand
	// it to whatever has the effect.
	Key string
	// RetriedKey is, in a run that tries another one again, the key that the same step had in that one: its effect may
	// have happened under it, without a result that anybody saw. Empty where the step had none there.
	RetriedKey string
	// Attempt counts from 1. Delivery counts how often this attempt was handed out, from 1.
	Attempt, Delivery int
	// Deadline is when the execution is given up: the execution timeout or the deadline of step or run, whichever comes
	// first. It is by this process's own clock, however wrong that is, as contexts have it. Zero for none.
	Deadline time.Time
	// Context is the out-of-band context that the submitter gave for the step, as far as the tool may see it. It shows
	// its secrets to Get alone, not where it is printed, logged or marshalled.
	Context Context
	// Trace is the W3C Trace Context of this attempt, in the trace that came with the plan; the parent is the attempt's
	// own span, which is the same however often the attempt is handed out. Zero where the plan came with none.
	Trace Trace
	// Worker is the name of this worker.
	Worker string
}

type infoKey struct{}

// InfoFrom returns what is known about the step whose handler was given ctx; ok is false outside of a handler. In a
// batch of several steps only Tool, Deadline and Worker are set; ItemsFrom tells the rest.
func InfoFrom(ctx context.Context) (info Info, ok bool) {
	p, ok := ctx.Value(infoKey{}).(*Info)
	if !ok {
		return Info{}, false
	}
	return *p, true
}

type itemsKey struct{}

// ItemsFrom gives, in a batch, the step of each item, in the items' order; nil where the tool takes no batches. Items
// that one step brought have the same Info, key included: the idempotency key of such an item is Key with its place
// among them. The items may be of different runs and tenants.
func ItemsFrom(ctx context.Context) []Info {
	if b, ok := ctx.Value(itemsKey{}).(*batch); ok {
		return b.stepsOfItems()
	}
	return nil
}

// batchContext is the context of one call with a batch.
type batchContext struct {
	stepContext
	batch *batch
}

// Value returns the Info and the items, and nothing else of Stepjet's.
func (c *batchContext) Value(key any) any {
	if _, ok := key.(itemsKey); ok {
		return c.batch
	}
	return c.stepContext.Value(key)
}

// stepContext is the context of one execution. It costs one cancel context: the deadline is kept by the execution's own
// timer, and the values lie in the execution itself.
type stepContext struct {
	context.Context // cancelled with one of the causes above
	info            *Info
	execution       *execution // nil in a batch
}

// Deadline returns when the execution is given up.
func (c *stepContext) Deadline() (time.Time, bool) { return c.info.Deadline, !c.info.Deadline.IsZero() }

// Err returns context.DeadlineExceeded where the time ran out, context.Canceled for any other end.
func (c *stepContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), ErrTimeout) {
		return context.DeadlineExceeded
	}
	return err
}

// Value returns the Info and the execution, and nothing else of Stepjet's.
func (c *stepContext) Value(key any) any {
	switch key.(type) {
	case infoKey:
		return c.info
	case executionKey:
		return c.execution
	}
	return c.Context.Value(key)
}
