package orchestrator

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// What a run is taken for that was read anew: the time of its shard, else that of the own member key, never the own
// clock.
func TestARunThatWasReadAnewHasTheTimeOfItsShard(t *testing.T) {
	w := newWorld(1, none, false)
	o := w.newOrch("o", 0)
	l := o.loops.all[0]
	w.now = time.Hour
	l.times.pulse = func() (time.Time, time.Duration) { return noon, 2 * time.Second }
	first := runOf("t", "r")
	require.Equal(t, noon.Add(2*time.Second), l.times.of(first))
	l.times.heard(nil, 0, noon.Add(time.Minute))
	l.times.heard(nil, 1, noon.Add(time.Minute))
	require.Equal(t, noon.Add(time.Minute), l.times.of(runOf("t", "r")))
	w.now += time.Second
	require.Equal(t, noon.Add(3*time.Second), l.times.of(first), "others' records are no news of this run")
	l.times.heard(first, 0, noon.Add(2*time.Minute))
	require.Equal(t, noon.Add(2*time.Minute), l.times.of(first))
}

// A record that lay in the ledger says when it was written, and nothing of how long ago that is.
func TestARecordThatLayInTheLedgerIsNoNewsOfTheTime(t *testing.T) {
	w := newWorld(1, none, false)
	l := w.newOrch("o", 0).loops.all[0]
	l.times.pulse = func() (time.Time, time.Duration) { return noon.Add(time.Hour), 0 }
	r := runOf("t", "r")
	r.generation, r.phase = 7, opening
	l.runs.byID[r.id] = r
	shards := l.store.Shards()
	c := &cursor{shard: subjects.LedgerShard(r.id.Partition(), shards)}
	l.cursors.owned[r.id.Partition()] = c
	start := kv.Entry{Subject: subjects.StartRecord(r.id, r.generation, shards), Seq: 8, Time: noon, Header: wire.Versioned()}
	l.record(c, start)
	require.Equal(t, noon.Add(time.Hour), l.times.of(r))
	c.caughtUp = true
	start.Seq, start.Time = 9, noon.Add(2*time.Hour)
	l.record(c, start)
	require.Equal(t, noon.Add(2*time.Hour), l.times.of(r))
}
