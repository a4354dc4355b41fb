package kv

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func beatOf(user, worker string, b wire.Beat) *nats.Msg {
	return &nats.Msg{Subject: subjects.Beat(subjects.InboxPrefix(user), worker), Header: wire.Versioned(), Data: b.Body()}
}

func names(w *Workers) (all []string) {
	list, _ := w.List()
	for _, x := range list {
		all = append(all, x.User+"/"+x.Name)
	}
	return all
}

// A worker is gone at once where it says so, and else when three of its beats were not heard; one of another user can't
// say so for it.
func TestAWorkerIsGone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := newWorkers(func() time.Time { return now })
	w.take(beatOf("u", "a", wire.Beat{Up: time.Minute}))
	w.take(beatOf("v", "a", wire.Beat{}))
	w.take(beatOf("u", "b", wire.Beat{}))
	require.Equal(t, []string{"u/a", "v/a", "u/b"}, names(w))
	all, _ := w.List()
	require.Equal(t, now.Add(-time.Minute), all[0].Since)
	w.take(beatOf("v", "b", wire.Beat{Gone: true}))
	w.take(beatOf("v", "a", wire.Beat{Gone: true}))
	w.take(beatOf("v", "a", wire.Beat{Gone: true}))
	require.Equal(t, []string{"u/a", "u/b"}, names(w))
	now = now.Add(wire.MissedBeats * wire.BeatEvery)
	w.take(beatOf("u", "b", wire.Beat{}))
	require.Equal(t, []string{"u/a", "u/b"}, names(w))
	now = now.Add(2 * time.Second)
	require.Equal(t, []string{"u/b"}, names(w))
	require.Equal(t, map[string]int{"u": 1}, w.ofUser)
	w.take(&nats.Msg{Subject: "beat.u.=1B"})
	require.Equal(t, []string{"u/b"}, names(w))
}

// Processes that were given one name are as many workers as they are.
func TestWorkersOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorkers(time.Now)
	for pid := range 3 {
		w.take(beatOf("u", "a", wire.Beat{Worker: tool.Worker{Host: "h", PID: 7 + pid, Busy: pid}}))
	}
	w.take(beatOf("u", "a", wire.Beat{Worker: tool.Worker{Host: "h", PID: 8}, Gone: true}))
	all, _ := w.List()
	require.Len(t, all, 2)
	require.Equal(t, []int{7, 9}, []int{all[0].PID, all[1].PID})
}

// Who beats under ever new names hides nobody of other users, and fills no memory.
func TestWorkersAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorkers(func() time.Time { return now })
	for i := range maxOfUser + 100 {
		w.take(beatOf("liar", fmt.Sprint("w", i), wire.Beat{Worker: tool.Worker{Busy: 1}}))
	}
	w.take(beatOf("u", "a", wire.Beat{}))
	all, missed := w.List()
	require.Len(t, all, maxOfUser+1)
	require.Equal(t, 100, missed)
	now = now.Add(time.Minute)
	w.take(beatOf("liar", "again", wire.Beat{}))
	require.Equal(t, []string{"liar/again"}, names(w))
}

// Who holds a tool is of interest where nobody takes its steps, and most of all who says why.
func TestWhoHoldsATool(t *testing.T) {
	t.Parallel()
	holds := func(name, why string) tool.Worker {
		return tool.Worker{Name: name, Tools: []tool.WorkerTool{{Tool: "x", Held: true, Why: why}}}
	}
	leaving := holds("l", "it ends")
	leaving.Leaving = true
	require.Nil(t, holderOf(nil, "x"))
	require.Nil(t, holderOf([]tool.Worker{leaving, holds("a", "")}, "y"))
	require.Equal(t, "b", holderOf([]tool.Worker{leaving, holds("a", ""), holds("b", "why"), holds("c", "why")}, "x").Name)
	serves := tool.Worker{Name: "s", Tools: []tool.WorkerTool{{Tool: "x"}}}
	require.Nil(t, holderOf([]tool.Worker{holds("a", "why"), serves}, "x"))
}
