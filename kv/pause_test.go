package kv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/subjects"
)

// TestNobodyEndsAnothersPause: a tool is paused as long as one of those who rely on it does, whoever came first or is
// done first.
func TestNobodyEndsAnothersPause(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	owner := func() *Store {
		s, err := Setup(t.Context(), natstest.Connect(t, srv), Config{})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	}
	a, b := owner(), owner()
	tool, err := a.Registry.Register(t.Context(), []byte(`{"name":"x","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	paused := func() bool {
		info, err := a.Queue.consumer(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		return info.Paused
	}
	over := func() { require.Eventually(t, func() bool { return !paused() }, 2*time.Minute, 10*time.Millisecond) }
	pausedBy := func(s *Store) (resume func()) {
		_, resume, err := s.Queue.pauseTool(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		return resume
	}

	// One who looked before the other's pause stood, and whose own came after it: the first sees that, and says that
	// it is there.
	unseen := func() {
		info, err := b.Queue.consumer(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		p := pause{s: a.Queue, stream: subjects.StepsStream(tool.Shard), durable: subjects.Durable("x")}
		require.NoError(t, p.set(t.Context(), info))
		q := pause{s: b.Queue, stream: p.stream, durable: p.durable}
		info.TimeStamp = info.TimeStamp.Add(time.Millisecond)
		require.NoError(t, q.set(t.Context(), info))
		info, err = a.Queue.consumer(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		require.True(t, p.wanting(info))
		require.NoError(t, p.set(t.Context(), info))
		info, err = b.Queue.consumer(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		require.True(t, q.wanting(info), "and so does the other")
		require.True(t, p.shared)
		require.NoError(t, q.set(t.Context(), info))
		info, err = a.Queue.consumer(t.Context(), "x", tool.Shard)
		require.NoError(t, err)
		require.False(t, p.wanting(info), "once")
	}

	pausedBy(a)()
	require.False(t, paused(), "who is alone doesn't hold it up")
	for name, second := range map[string]bool{"the second is done first": true, "the first is done first": false} {
		done, left := pausedBy(a), pausedBy(b)
		if second {
			done, left = left, done
		}
		done()
		require.True(t, paused(), name)
		left()
		over()
	}
	unseen()
	over()
}

// TestWhatWasGivenOutIsNotRemoved: a message that a worker got between the look at what waits and the pause is left
// to it.
func TestWhatWasGivenOutIsNotRemoved(t *testing.T) {
	t.Parallel()
	s, err := Setup(t.Context(), natstest.Connect(t, natstest.Start(t)), Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	tool, err := s.Registry.Register(t.Context(), []byte(`{"name":"x","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "x", Step: "a", Number: 1}
	sent := make(chan error, 1)
	s.Queue.DispatchAsync(t.Context(), Dispatch{Attempt: a, Shard: tool.Shard, Body: []byte(`{}`)}, func(err error) { sent <- err })
	require.NoError(t, <-sent)
	stream, subject := subjects.StepsStream(tool.Shard), subjects.Step(a, tool.Shard)
	e, err := s.Ledger.Read(t.Context(), subject)
	require.NoError(t, err)
	seq := e.Seq
	require.NoError(t, s.Queue.removeAbove(t.Context(), stream, subject, seq))
	_, err = s.Ledger.Read(t.Context(), subject)
	require.NoError(t, err)
	require.NoError(t, s.Queue.removeAbove(t.Context(), stream, subject, seq-1))
	_, err = s.Ledger.Read(t.Context(), subject)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}
