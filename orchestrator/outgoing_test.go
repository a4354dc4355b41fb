package orchestrator

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// What is on its way lies in no stream yet. An owner that let go of the partition before would let the next one compare
// too soon, which then holds back what was sent: it counts twice as wanted.
func TestWhoSendsStillIsAtWork(t *testing.T) {
	t.Parallel()
	served, left := uint64(0), 0
	ps := &partitions{
		env: &env{log: slog.New(slog.DiscardHandler), ctx: context.Background()}, member: "a", cursors: &cursors{}, runs: newRunTable(),
		reaper: &reaper{}, outgoing: &outgoing{}, mine: func(int) bool { return true }, gained: func() {},
		serves: func(set uint64) { served = set }, released: func() { left++ }, alone: func(partitionSet) {},
	}
	ps.outgoing.over = ps.tellServed
	c := &cursor{caughtUp: true}
	for p := range subjects.Partitions {
		ps.cursors.owned[p] = c
	}
	ps.own([]kv.Member{{ID: "a"}})
	require.Equal(t, ^uint64(0), served)

	var others []int
	for p := range subjects.Partitions {
		if owner(p, []string{"a", "b"}) == "b" {
			others = append(others, p)
		}
	}
	sent, twice := others[0], others[1]
	ps.outgoing.begun(sent)
	ps.outgoing.begun(twice)
	ps.outgoing.begun(twice)
	both := []kv.Member{{ID: "a"}, {ID: "b", Serves: ^uint64(0)}}
	ps.own(both)
	require.Nil(t, ps.cursors.owned[sent], "it is another's now")
	require.Equal(t, subjects.Partitions-len(others), ps.cursors.count())
	mine := ps.cursors.atHand()
	require.Equal(t, mine|1<<sent|1<<twice, served, "and this one is at work there still")
	ps.outgoing.ended(sent)
	require.Equal(t, mine|1<<twice, served)
	ps.outgoing.ended(twice)
	require.Equal(t, mine|1<<twice, served)
	ps.outgoing.ended(twice)
	require.Equal(t, mine, served)

	kept := 0
	for mine>>kept&1 == 0 {
		kept++
	}
	ps.outgoing.begun(kept)
	both[0].Leaving = true
	ps.own(both)
	require.Equal(t, uint64(1)<<kept, served)
	require.Zero(t, left, "who leaves waits for it")
	ps.outgoing.ended(kept)
	require.Zero(t, served)
	require.Positive(t, left)
}

// Who takes a partition again is told of it as of any other.
func TestWhatIsTakenAgainIsNotAwaited(t *testing.T) {
	t.Parallel()
	told := 0
	o := &outgoing{over: func() { told++ }}
	o.begun(3)
	o.await(1<<3|1<<4, 0)
	require.EqualValues(t, 1<<3, o.left())
	o.await(0, 1<<3)
	require.Zero(t, o.left())
	o.ended(3)
	require.Zero(t, told)
}
