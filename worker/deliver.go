package worker

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// accept takes a delivery. It is called from the feed's one goroutine and doesn't wait.
func (e *engine) accept(f *feed, d *kv.Delivery) {
	if !f.busy.Load() {
		f.busy.Store(true)
	}
	e.clock.hear(d.Stored, time.Now())
	if e.hard.Err() != nil { // Run has given up on the feed's last deliveries
		f.refuse(d)
		return
	}
	if !wire.KindStep.Known(d.Header) {
		// Neither acknowledged nor refused: its lease runs out, and then perhaps a newer worker gets it.
		e.log.Warn("left a step of a newer version of Stepjet to other workers", "subject", d.Subject, "delivery",
			d.Delivered)
		f.refuse(d)
		return
	}
	a, step, err := e.read(f, d)
	if err != nil {
		e.log.Error("removed a message from the step queue that is not Stepjet's", "subject", d.Subject, "reason", err)
		e.ack(d)
		f.refuse(d)
		return
	}
	if e.join(a, d) {
		f.refuse(d)
		return
	}
	x := e.newExecution(f, d, a, step)
	if x.doubted = e.doubtful(f, d, x.taken); x.doubted {
		e.open.add() // and in no map: a delivery that can be trusted must not join it
	} else {
		e.enter(x)
	}
	if f.gather != nil {
		f.gather.accept(x)
		return
	}
	e.pool.run(x)
}

// read checks that a delivery is what Stepjet sends: all that it names follows from its subject.
func (e *engine) read(f *feed, d *kv.Delivery) (a subjects.Attempt, step wire.Step, err error) {
	a, shard, ok := subjects.ParseStep(d.Subject)
	if !ok || a.Tool != f.tool.def.Name || shard != f.shard {
		return a, step, fault.New(fault.Internal, "the subject is not a step of tool %q", f.tool.def.Name)
	}
	if step, err = wire.ParseStep(d.Header); err != nil {
		return a, step, err
	}
	return a, step, step.Check(a, e.store.Ledger.Shards(), maxBlob)
}

// enter makes an execution known to cancels and heartbeats.
func (e *engine) enter(x *execution) {
	e.open.add()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live[x.attempt] = x
}

// join hands a delivery to the execution of the same attempt that is under way here already: the lease had run out
// without this worker noticing (a server that was restarted hands everything out anew), or the step was dispatched
// twice. It reports false if there is none.
func (e *engine) join(a subjects.Attempt, d *kv.Delivery) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.live[a]
	if x == nil {
		return false
	}
	for i, lease := range x.leases {
		if lease.StreamSeq == d.StreamSeq {
			x.leases[i] = d
			return true
		}
	}
	x.leases = append(x.leases, d)
	return true
}

// forget makes an execution unknown and gives its leases, whose acknowledging is then the caller's.
func (e *engine) forget(x *execution) []*kv.Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.live[x.attempt] == x {
		delete(e.live, x.attempt)
	}
	leases := x.leases
	x.leases = nil
	return leases
}

// ack says that a delivery needs no more attention. One that fails is redelivered, found recorded, and acknowledged
// then.
func (e *engine) ack(d *kv.Delivery) {
	if err := d.Ack(); err != nil {
		e.log.Debug("an acknowledgement could not be sent", "subject", d.Subject, "error", err)
	}
}
