package orchestrator

import (
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// flight is one attempt that is out: dispatched, and not decided yet. It takes room in its tool's window.
type flight struct {
	attempt  int
	lane     *lane
	sent     time.Time     // the last time; zero where an earlier owner sent it
	seq      atomic.Uint64 // of its message in the step stream, once that is known
	sending  atomic.Int32  // messages of it that this owner is making or sending: until they are stored it is not lost
	bytes    int64         // of its arguments; those that an earlier owner sent are not counted
	released bool
}

func (r *run) track(c machine.Call, f *flight) {
	if r.flights == nil {
		r.flights = map[machine.Call]*flight{}
	}
	if old := r.flights[c]; old != nil {
		old.release()
	}
	r.flights[c] = f
	f.lane.out++
	f.lane.window.add(1)
}

func (f *flight) release() {
	f.lane.out--
	f.lane.window.add(-1)
	f.add(-f.bytes)
	f.released = true
}

// sending is one attempt on its way to a worker: everything that is needed beside the loop.
type sending struct {
	attempt  subjects.Attempt
	dispatch kv.Dispatch
	step     wire.Step
	inputs   inputs
	flight   *flight // nil for one that waits for its time

	outgoing  *outgoing
	partition int
}

// begun and ended are called around all that is done to send it.
func (s *sending) begun() {
	s.outgoing.begun(s.partition)
	if s.flight != nil {
		s.flight.sending.Add(1)
	}
}

func (s *sending) ended() {
	if s.flight != nil {
		s.flight.sending.Add(-1)
	}
	s.outgoing.ended(s.partition)
}

// ours reports whether this owner is sending an attempt right now.
func (f *flight) ours(attempt int) bool {
	return f != nil && f.attempt == attempt && f.sending.Load() > 0
}

func (f *flight) add(bytes int64) {
	f.bytes += bytes
	for _, b := range []*burden{f.lane.ofRun, f.lane.ofTenant} {
		if b != nil {
			b.add(bytes)
		}
	}
}

// outgoing counts what a loop is sending of each partition: it lies in no stream yet, and so nobody else can see it.
// Whoever lets go of a partition is at work there until that is over, else the next owner compares too soon what lies
// there, and holds back what was sent.
type outgoing struct {
	sends   [subjects.Partitions]atomic.Int32
	awaited atomic.Uint64 // partitions that were let go of, with a bit for each
	over    func()        // is told, beside the loop, when nothing is on its way of an awaited partition
}

func (o *outgoing) begun(partition int) { o.sends[partition].Add(1) }

func (o *outgoing) ended(partition int) {
	if o.sends[partition].Add(-1) == 0 && o.awaited.Load()>>partition&1 == 1 {
		o.over()
	}
}

// await notes what was let go of, and what was taken again.
func (o *outgoing) await(lost, taken uint64) {
	o.awaited.Store(o.awaited.Load()&^taken | lost)
}

// left returns the partitions that were let go of and of which something is on its way; the others are forgotten.
func (o *outgoing) left() uint64 {
	set := o.awaited.Load()
	for p := range o.sends {
		if set>>p&1 == 1 && o.sends[p].Load() == 0 {
			set &^= 1 << p
		}
	}
	o.awaited.Store(set)
	return set
}
