package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// Each partition has one loop, every loop has about as many, and whole shards where there are enough of them.
func TestLoopsShareOutPartitions(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 2, 4, 16, 64} {
		for _, loops := range []int{1, 2, 3, 8, 64} {
			t.Run(fmt.Sprint(shards, " shards ", loops, " loops"), func(t *testing.T) {
				t.Parallel()
				has, readers := make([]int, loops), map[[2]int]bool{}
				for p := range subjects.Partitions {
					i := loopOf(p, shards, loops)
					has[i]++
					readers[[2]int{subjects.LedgerShard(p, shards), i}] = true
				}
				for i, n := range has {
					require.InDelta(t, subjects.Partitions/loops, n, 1, "loop %d", i)
				}
				require.LessOrEqual(t, len(readers), shards+loops-1, "cursors")
			})
		}
	}
}

type toldMember struct {
	serves uint64
	marks  []kv.Mark
}

func (m *toldMember) Serve(set uint64)                   { m.serves = set }
func (m *toldMember) Mark(marks []kv.Mark)               { m.marks = marks }
func (m *toldMember) Marks() []kv.Mark                   { return []kv.Mark{{Shard: 9}} }
func (m *toldMember) Stored() (time.Time, time.Duration) { return time.Time{}, 0 }

// To other processes, the loops of one are one member.
func TestLoopsAreOneMember(t *testing.T) {
	t.Parallel()
	ls := newLoops(t.Context(), &self{cfg: Config{Loops: 2}.withDefaults(), ready: make(chan struct{})}, &simStore{w: newWorld(1, none, false)}, newRegistry(nil, nil))
	ls.serve(0, 0b01)
	m := &toldMember{}
	ls.join(m)
	require.EqualValues(t, 0b01, m.serves)
	ls.serve(1, 0b10)
	require.EqualValues(t, 0b11, m.serves)
	ls.serve(0, 0)
	require.EqualValues(t, 0b10, m.serves)

	ls.mark(0, []kv.Mark{{Below: 1}})
	ls.mark(1, []kv.Mark{{Below: 2}})
	ls.mark(0, []kv.Mark{{Below: 3}})
	require.Equal(t, []kv.Mark{{Below: 3}, {Below: 2}}, m.marks)
	require.Equal(t, []kv.Mark{{Below: 2}, {Shard: 9}}, ls.others(0), "those of other processes too")

	ls.leave(0) // its key expired, and it had nothing
	left := 0
	ls.whenLeft(func() { left++ })
	ls.leave(1)
	require.Zero(t, left, "one loop goes on still")
	ls.leave(0)
	ls.leave(1)
	require.Equal(t, 1, left)
}

func windowsOf(limit, n int, wake func(i int)) []*window {
	ps := &pools{byName: map[string]*pool{}}
	all := make([]*window, n)
	for i := range all {
		all[i] = newWindow(limit, 1, nil, &neighbours{})
		ps.join("t", &all[i].stake, func(func()) { wake(i) }, nil)
	}
	return all
}

// One loop alone has all the room; several have an equal part each, and what the others don't need.
func TestLoopsShareTheRoomOfATool(t *testing.T) {
	t.Parallel()
	var told []int
	ws := windowsOf(8, 2, func(i int) { told = append(told, i) })
	a, b := ws[0], ws[1]
	for range 10 {
		require.False(t, a.full())
		a.add(1)
	}
	require.True(t, a.full())
	x := &lane{run: runOf("t", "r"), window: a}
	a.alone.size = 100
	a.hold(x, held{})
	for range 5 {
		require.False(t, b.full(), "its portion is never refused")
		b.add(1)
	}
	require.True(t, b.full())
	require.EqualValues(t, 15, b.stake.together(0))
	for range 5 {
		require.True(t, a.full(), "it has more than its portion, and nothing is free")
		a.add(-1)
	}
	require.True(t, a.full(), "it has its portion, and nothing is free")
	a.add(-1)
	require.False(t, a.full())
	a.add(1)

	b.add(-1)
	b.stake.leave()
	b.stake.leave()
	require.Equal(t, []int{0}, told, "once, until it has looked")
	require.False(t, a.full())
	a.stake.told.Store(false)
	a.sendHeld(func(*lane, held) bool { a.add(1); return true })
	b.stake.leave()
	require.Equal(t, []int{0}, told, "nobody waits any more")
	b.add(-4)
	a.add(-6)
	require.Zero(t, a.stake.pool.out.Load()+a.stake.pool.claims.Load()+a.stake.pool.waiting.Load())
}
