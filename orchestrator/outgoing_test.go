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
	ended := func(s *sends) { s.ended(ps.sent) }
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
	first, second := ps.outgoing.of(sent), ps.outgoing.of(twice)
	first.begun()
	second.begun()
	second.begun()
	both := []kv.Member{{ID: "a"}, {ID: "b", Serves: ^uint64(0)}}
	ps.own(both)
	require.Nil(t, ps.cursors.owned[sent], "it is another's now")
	require.Equal(t, subjects.Partitions-len(others), ps.cursors.count())
	mine := ps.cursors.atHand()
	require.Equal(t, mine|1<<sent|1<<twice, served, "and this one is at work there still")
	ended(first)
	require.Equal(t, mine|1<<twice, served)
	ended(second)
	require.Equal(t, mine|1<<twice, served)
	ended(second)
	require.Equal(t, mine, served)

	kept := 0
	for mine>>kept&1 == 0 {
		kept++
	}
	third := ps.outgoing.of(kept)
	third.begun()
	both[0].Leaving = true
	ps.own(both)
	require.Equal(t, uint64(1)<<kept, served)
	require.Zero(t, left, "who leaves waits for it")
	ended(third)
	require.Zero(t, served)
	require.Positive(t, left)
}

// Who reads a partition anew does not know what it sent before, as if that had been another: until it is over, and has been
// compared with what is held back, nothing is said of what is out there.
func TestWhoReadsAnewIsNotAloneWithWhatItSent(t *testing.T) {
	t.Parallel()
	var alone []int
	c := &cursor{partitions: []int{3, 4}}
	ps := &partitions{
		env: &env{log: slog.New(slog.DiscardHandler), ctx: t.Context(), jobs: &simJobs{most: 0}, clock: wall{}}, member: "a", cursors: &cursors{}, runs: newRunTable(),
		outgoing: &outgoing{}, serves: func(uint64) {}, alone: func(s partitionSet) {
			for p := range s {
				if s[p] {
					alone = append(alone, p)
				}
			}
		},
	}
	ps.cursors.owned[3], ps.cursors.owned[4] = c, c
	before := ps.outgoing.of(3)
	before.begun()
	ps.restart(c)
	require.True(t, ps.cursors.shared[3])
	require.False(t, ps.cursors.shared[4])
	require.NotSame(t, before, ps.outgoing.of(3))
	ps.outgoing.of(3).begun()
	require.Empty(t, alone)
	before.ended(ps.sent)
	require.Equal(t, []int{3}, alone)
	require.False(t, ps.cursors.shared[3])
	require.Zero(t, ps.outgoing.before(), "what it sends since is its own")
}
