package orchestrator

import (
	"sync/atomic"

	"github.com/stepjet/stepjet/subjects"
)

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
