package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/subjects"
)

// Deadlines, retries and ages count from the times that the ledger's servers put on records. This process has no right to
// compare them with its own clock, which may be wrong by minutes, or jump. So it takes the time of a record that it was
// given live, and adds what has passed since by the monotonic clock, which nobody sets.
//
// A record that lay in the ledger before its cursor was caught up says nothing, since nobody knows for how long it lay
// there; one that was given late, because this process stood still, says too little, so that the highest counts.

// ledgerTime is the ledger's time for one run. It never goes back; servers whose clocks differ can't make a run's time
// jump by more than the records of that run do.
type ledgerTime struct {
	zero int64 // the ledger's time, in Unix nanoseconds, at which the monotonic clock was 0; 0: not known
}

// heard takes a record's time and when it came.
func (t *ledgerTime) heard(record time.Time, came time.Duration) {
	t.zero = max(t.zero, record.UnixNano()-int64(came))
}

func (t ledgerTime) known() bool { return t.zero != 0 }

// at gives the ledger's time when the monotonic clock shows mono.
func (t ledgerTime) at(mono time.Duration) time.Time { return time.Unix(0, t.zero+int64(mono)).UTC() }

// when gives what the monotonic clock shows at a time of the ledger.
func (t ledgerTime) when(at time.Time) time.Duration { return time.Duration(at.UnixNano() - t.zero) }

// shardTime is the ledger's time by the records of one shard, for runs that were read from it and had no record since. What
// was heard more than two minutes ago counts no more: another server may lead the shard by now, with another clock.
type shardTime struct {
	now, before ledgerTime
	since       time.Duration // when now was begun
}

const shardTimeKept = time.Minute

func (t *shardTime) heard(record time.Time, came time.Duration) {
	if came-t.since > shardTimeKept {
		t.before, t.now, t.since = t.now, ledgerTime{}, came
	}
	t.now.heard(record, came)
}

func (t *shardTime) best() ledgerTime { return ledgerTime{max(t.now.zero, t.before.zero)} }

// heard takes a live record of a run.
func (l *loop) heard(r *run, shard int, record time.Time) {
	mono := l.clock.Mono()
	for len(l.shardTimes) <= shard {
		l.shardTimes = append(l.shardTimes, shardTime{})
	}
	l.shardTimes[shard].heard(record, mono)
	if r != nil {
		r.time.heard(record, mono)
	}
}

// timeOf gives the ledger's time for a run. One that was read anew begins with its shard's; before any record of that came
// live, with the time that the server put on this process's own member key.
func (l *loop) timeOf(r *run) time.Time {
	mono := l.clock.Mono()
	if !r.time.known() {
		if shard := subjects.LedgerShard(r.id.Partition(), l.store.Shards()); shard < len(l.shardTimes) {
			r.time = l.shardTimes[shard].best()
		}
		if at, ago := l.pulse(); !r.time.known() && !at.IsZero() {
			r.time.heard(at, mono-ago)
		}
		if !r.time.known() { // nothing was heard of any server
			r.time.heard(l.clock.Now(), mono)
		}
	}
	return r.time.at(mono)
}
