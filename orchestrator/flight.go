package orchestrator

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/internal/backoff"
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
	told     backoff.Pace // of its worker's words on how far it is
	wrote    backoff.Pace // likewise, on what it is writing
}

// How often it is told how far an attempt is, whatever its worker does.
const (
	tellEvery   = 200 * time.Millisecond
	tellsAtOnce = 5
)

func (r *run) track(c machine.Call, f *flight) {
	if old := r.flights.At(c); old != nil {
		old.release()
	}
	r.flights.Put(c, f)
	f.lane.out++
	f.lane.window.add(1)
}

// flightOf returns an attempt that is out, as whoever has it names it; nil for one that is not.
func flightOf(r *run, of subjects.Attempt) *flight {
	if r.phase != running || r.machine == nil || r.generation != of.Generation || !r.has(of) {
		return nil
	}
	c, ok := r.machine.Find(of.Step)
	if !ok || !r.machine.Open(c, of.Number) {
		return nil
	}
	f := r.flights.At(c)
	if f == nil || f.attempt != of.Number {
		return nil
	}
	return f
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

	sends *sends // that it is one of
	over  func() // is told where it was the last of those of before
}

// begun and ended are called around all that is done to send it.
func (s *sending) begun() {
	s.sends.begun()
	if s.flight != nil {
		s.flight.sending.Add(1)
	}
}

func (s *sending) ended() {
	if s.flight != nil {
		s.flight.sending.Add(-1)
	}
	s.sends.ended(s.over)
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
// there, and holds back what was sent. And whoever reads a partition anew is such a next owner of what it sent before.
type outgoing struct {
	sends   [subjects.Partitions]*sends
	earlier [subjects.Partitions][]*sends // of before the partition was let go of, or read anew
	over    func()                        // is told, beside the loop, when nothing of an earlier one is on its way
}

// sends are those of a partition as long as it is not let go of.
type sends struct {
	left    atomic.Int32
	earlier atomic.Bool
}

// of returns the sends that what is sent of a partition now is one of.
func (o *outgoing) of(partition int) *sends {
	if o.sends[partition] == nil {
		o.sends[partition] = &sends{}
	}
	return o.sends[partition]
}

func (s *sends) begun() { s.left.Add(1) }

func (s *sends) ended(over func()) {
	if s.left.Add(-1) == 0 && s.earlier.Load() {
		over()
	}
}

// leave notes that a partition is let go of.
func (o *outgoing) leave(partition int) {
	s := o.sends[partition]
	if o.sends[partition] = nil; s != nil {
		s.earlier.Store(true)
		o.earlier[partition] = append(o.earlier[partition], s)
	}
}

// before returns the partitions of which something is on its way that was sent before they were let go of.
func (o *outgoing) before() (set uint64) {
	for p := range o.earlier {
		o.earlier[p] = slices.DeleteFunc(o.earlier[p], func(s *sends) bool { return s.left.Load() == 0 })
		if len(o.earlier[p]) > 0 {
			set |= 1 << p
		}
	}
	return set
}
