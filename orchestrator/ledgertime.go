package orchestrator

import (
	"container/heap"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// The ledger's time for a run is the servers' time (kv.ServerTime) by the records of that run which this process was
// given live: servers whose clocks differ can't make it jump by more than those records do. A record that lay in the
// ledger before its cursor was caught up says nothing, since nobody knows for how long it lay there.
//
// A run that was read anew, and had no record since, goes by the records of its shard.

// ledgerTime keeps the times of a loop's runs.
type ledgerTime struct {
	*env
	shards []kv.RecentTime
	pulse  func() (at time.Time, ago time.Duration) // when the server stored the own member key; zero where it is not known
}

func newLedgerTime(e *env) *ledgerTime {
	return &ledgerTime{env: e, pulse: func() (time.Time, time.Duration) { return time.Time{}, 0 }}
}

// heard takes a live record of a run.
func (t *ledgerTime) heard(r *run, shard int, record time.Time) {
	mono := t.clock.Mono()
	for len(t.shards) <= shard {
		t.shards = append(t.shards, kv.RecentTime{})
	}
	t.shards[shard].Heard(record, mono)
	if r != nil {
		r.time.Heard(record, mono)
	}
}

// of returns the ledger's time for a run. One that was read anew begins with its shard's; before any record of that
// came live, with the time that the server put on this process's own member key.
func (t *ledgerTime) of(r *run) time.Time {
	mono := t.clock.Mono()
	if !r.time.Known() {
		r.time = t.best(subjects.LedgerShard(r.id.Partition(), t.store.Shards()), mono)
	}
	return r.time.At(mono)
}

// now returns the time by the servers, as far as anything of a ledger shard was heard.
func (t *ledgerTime) now(shard int) time.Time {
	mono := t.clock.Mono()
	best := t.best(shard, mono)
	return best.At(mono)
}

// best returns what is known of the servers' time without any record of a run.
func (t *ledgerTime) best(shard int, mono time.Duration) (now kv.ServerTime) {
	if shard < len(t.shards) {
		now = t.shards[shard].Best()
	}
	if at, ago := t.pulse(); !now.Known() && !at.IsZero() {
		now.Heard(at, mono-ago)
	}
	if !now.Known() { // nothing was heard of any server
		now.Heard(t.clock.Now(), mono)
	}
	return now
}

// timers is a heap of runs by their next deadline, as the monotonic clock will show it. A run stands in it at most
// once.
type timers struct{ heap timerHeap }

// set moves a run to a time of the ledger; the zero time removes it.
func (t *timers) set(r *run, at time.Time) {
	if at.IsZero() {
		if r.timer >= 0 {
			heap.Remove(&t.heap, r.timer)
		}
		return
	}
	wake := r.time.When(at)
	switch {
	case r.timer < 0:
		r.wake = wake
		heap.Push(&t.heap, r)
	case r.wake != wake:
		r.wake = wake
		heap.Fix(&t.heap, r.timer)
	}
}

func (t *timers) next() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].wake, true
}

// due takes out the first run whose time has come.
func (t *timers) due(mono time.Duration) *run {
	if len(t.heap) == 0 || t.heap[0].wake > mono {
		return nil
	}
	return heap.Pop(&t.heap).(*run)
}

type timerHeap []*run

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool { return h[i].wake < h[j].wake }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer, h[j].timer = i, j
}

func (h *timerHeap) Push(x any) {
	r := x.(*run)
	r.timer = len(*h)
	*h = append(*h, r)
}

func (h *timerHeap) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	r.timer = -1
	return r
}
