package worker

import "time"

// A step is acknowledged once its record stands and its handler has returned. Where it was decided without the handler,
// by a timeout or a cancel, that may be long before the handler returns, if it ever does. The acknowledgement frees the
// step's slot for the next step of the tool, so until then the lease is kept: else more handlers would be at work than
// the tool's limit.

// The states of an execution's acknowledgement.
const (
	owesNothing int32 = iota // no handler is at work: it is sent once the record stands
	handlerAt                // a handler is at work
	ackOwed                  // and its record stands: the acknowledgement waits for it
)

// atWork notes that the handler is about to be called.
func (x *execution) atWork() { x.owing.Store(handlerAt) }

// workDone notes that the handler has returned, and sends the acknowledgement that waits for it.
func (x *execution) workDone() {
	if x.owing.Swap(owesNothing) == ackOwed {
		x.acknowledge()
	}
}

// owe lets the acknowledgement wait for the handler; false where none is at work. A handler that is deaf must not hold
// a limit of 1 for ever: the wait ends a lease after the time that the execution could have taken.
func (x *execution) owe() bool {
	if !x.owing.CompareAndSwap(handlerAt, ackOwed) {
		return false
	}
	worked := time.Duration(x.e.clock.since(time.Now()) - x.began.Load())
	wait := max(x.step.Timeout-worked, 0) + x.feed.ackWait
	time.AfterFunc(wait, func() {
		if x.owing.CompareAndSwap(ackOwed, owesNothing) {
			x.log().Error("a handler is at work long after its step was decided; the step is acknowledged, so one more than the tool's limit may be at work now",
				"wait", wait)
			x.acknowledge()
		}
	})
	return true
}

// acknowledge sends the acknowledgement of all that the execution holds, as long as it surely holds it. The server
// takes one of whoever sends it: where the lease ran out it would be that of the next worker's delivery, whose place in
// the limit would be free while its handler is at work. That worker, or the next, finds the record and acknowledges.
func (x *execution) acknowledge() {
	leases := x.e.forget(x)
	if len(leases) > 0 && !x.holds(time.Now()) {
		x.log().Info("the lease may have run out; the step is left to its next delivery to be acknowledged")
		return
	}
	for _, d := range leases {
		x.e.ack(d)
	}
}
