package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// The ledger's time for a run is the servers' time (kv.ServerTime) by the records of that run which this process was given
// live: servers whose clocks differ can't make it jump by more than those records do. A record that lay in the ledger
// before its cursor was caught up says nothing, since nobody knows for how long it lay there.
//
// A run that was read anew, and had no record since, goes by the records of its shard.

// heard takes a live record of a run.
func (l *loop) heard(r *run, shard int, record time.Time) {
	mono := l.clock.Mono()
	for len(l.shardTimes) <= shard {
		l.shardTimes = append(l.shardTimes, kv.RecentTime{})
	}
	l.shardTimes[shard].Heard(record, mono)
	if r != nil {
		r.time.Heard(record, mono)
	}
}

// timeOf gives the ledger's time for a run. One that was read anew begins with its shard's; before any record of that came
// live, with the time that the server put on this process's own member key.
func (l *loop) timeOf(r *run) time.Time {
	mono := l.clock.Mono()
	if !r.time.Known() {
		if shard := subjects.LedgerShard(r.id.Partition(), l.store.Shards()); shard < len(l.shardTimes) {
			r.time = l.shardTimes[shard].Best()
		}
		if at, ago := l.pulse(); !r.time.Known() && !at.IsZero() {
			r.time.Heard(at, mono-ago)
		}
		if !r.time.Known() { // nothing was heard of any server
			r.time.Heard(l.clock.Now(), mono)
		}
	}
	return r.time.At(mono)
}
