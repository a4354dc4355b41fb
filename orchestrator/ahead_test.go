package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// A mark tells which runs are busy, the oldest first: those that go on, did so for a while, and had a record lately.
func TestMarksTellWhatIsBusy(t *testing.T) {
	t.Parallel()
	r := newReaping()
	has := func(generation uint64, phase phase, came, touched time.Duration) {
		r.has(generation, time.Time{})
		x := r.runs.byID[subjects.NewRun("t", fmt.Sprint("r", generation))]
		x.phase, x.came, x.touched = phase, noon.Add(-came), noon.Add(-touched)
	}
	has(7, running, time.Minute, time.Second)
	has(3, running, time.Hour, busyFor)        // waits
	has(4, finished, time.Minute, time.Second) // is over
	has(5, running, newFor-1, 0)               // is over before anybody can read of it
	has(6, awaiting, time.Minute, 0)
	has(2, running, time.Hour, busyFor-1) // read later than the others
	require.Equal(t, []string{"t.r2", "t.r7"}, r.ownMarks(noon)[0].Busy)
	var partition oldest
	for _, g := range []uint64{7, 2, 9, 5} {
		partition.add(&run{identity: identity{generation: g}})
	}
	first, _ := partition.first()
	require.EqualValues(t, 2, first, "in the order of their plans, whichever was read first")
	for g := range uint64(2 * busiest) {
		has(100+g, running, time.Minute, 0)
	}
	require.Len(t, r.ownMarks(noon)[0].Busy, busiest)
	r.siblings = 3
	require.Len(t, r.ownMarks(noon)[0].Busy, busiest/4)
}

// Who takes partitions over reads those of their runs ahead that anybody told of, and each once.
func TestWhatIsReadAhead(t *testing.T) {
	t.Parallel()
	a, b := subjects.NewRun("t", "a"), subjects.NewRun("t", "b")
	marks := []kv.Mark{{Busy: []string{a.Key(), b.Key(), "", "t", ".a", "t.>", "t.a b"}}, {Busy: []string{a.Key()}}, {Shard: 1, Busy: []string{b.Key()}}}
	require.Equal(t, []subjects.Run{a}, busyIn(0, []int{a.Partition()}, marks))
	require.Equal(t, []subjects.Run{a, b}, busyIn(0, []int{a.Partition(), b.Partition()}, marks))
	var many kv.Mark
	for i := range 2 * busyAtMost {
		many.Busy = append(many.Busy, subjects.NewRun("t", fmt.Sprint(i)).Key())
	}
	all := make([]int, subjects.Partitions)
	for p := range all {
		all[p] = p
	}
	require.Len(t, busyIn(0, all, []kv.Mark{many}), busyAtMost)
}

// What is read ahead says nothing of the rest: how far all is read, it does not tell. What is read once more counts once.
func TestWhatIsReadAheadIsReadOnceMore(t *testing.T) {
	t.Parallel()
	l := newWorld(1, none, false).newOrch("o", 0).loops.all[0]
	id := subjects.NewRun("t", "r")
	c := &cursor{partitions: []int{id.Partition()}}
	c.ahead = &cursor{whole: c}
	l.cursors.owned[id.Partition()] = c
	plan := kv.Entry{Subject: subjects.PlanRecord(id, 1), Seq: 50, Time: epoch, Data: []byte(`{}`)}
	result := kv.Entry{Subject: subjects.StepRecord(subjects.Attempt{Run: id, Generation: 50, Step: "a", Tool: "t", Number: 1}, 1), Seq: 60, Time: epoch}
	for _, from := range []*cursor{c.ahead, c, c.ahead} {
		l.record(from, plan)
		l.record(from, result)
		require.Len(t, l.runs.byID[id].parked, 1)
	}
	require.EqualValues(t, 60, c.last, "once all was read up to there")

	other := &cursor{partitions: c.partitions}
	other.ahead = &cursor{whole: other}
	l.cursors.owned[id.Partition()] = other
	later := result
	later.Seq = 70
	l.record(other.ahead, later)
	require.Zero(t, other.last, "nobody knows what lies below")
	require.Len(t, l.runs.byID[id].parked, 2)
	other.caughtUp = true
	later.Seq = 80
	l.record(other.ahead, later)
	require.Len(t, l.runs.byID[id].parked, 2, "who reads all reads it, too")
}

// All is read behind what was read ahead, once that is open.
func TestAllIsReadBehindWhatIsBusy(t *testing.T) {
	t.Parallel()
	l := newWorld(1, none, false).newOrch("o", 0).loops.all[0]
	id := subjects.NewRun("t", "r")
	l.reaper.marks = func() []kv.Mark { return []kv.Mark{{Busy: []string{id.Key()}}} }
	l.partitions.follow(0, []int{id.Partition()})
	c := l.cursors.owned[id.Partition()]
	require.NotNil(t, c.ahead)
	require.False(t, c.begun, "what is busy comes first")
	l.partitions.open(c)
	require.True(t, c.begun)
	l.partitions.caughtUp(c, 7)
	require.Nil(t, c.ahead, "who reads all reads it, too")
	require.EqualValues(t, 7, c.last)
}

// Runs that have been quiet are opened a few at a time, so that what goes on is not left waiting behind them.
func TestQuietRunsAreOpenedAFewAtATime(t *testing.T) {
	t.Parallel()
	l := newWorld(1, none, false).newOrch("o", 0).loops.all[0]
	id := subjects.NewRun("t", "r")
	c := &cursor{partitions: []int{id.Partition()}, begun: true, caughtUp: true, latest: epoch}
	l.cursors.owned[id.Partition()] = c
	const n = 50
	for i := range n {
		r := &run{identity: identity{id: id, submitted: epoch}, timer: -1}
		if i >= n/2 {
			r.submitted = epoch.Add(-quietFor - 1)
		}
		c.closed = append(c.closed, r)
	}
	l.partitions.openNext(c)
	require.Equal(t, n/2, c.opening, "those that had a record lately")
	require.Len(t, c.closed, n/2)
	for left := n / 2; left > 0; left-- {
		c.opening--
		l.partitions.openNext(c)
		require.Equal(t, max(left-1, quietWide), c.opening)
		if left-1 <= quietWide {
			break
		}
	}
}
