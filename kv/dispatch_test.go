package kv_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestADispatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	tool := register(t, s, "tool", 10)
	a := attempt("tool", "a")
	for range 3 {
		dispatch(t, s, kv.Dispatch{Attempt: a})
	}
	_, got := pull(t, s, tool, 10)
	receive(t, got, "the step")
	dispatch(t, s, kv.Dispatch{Attempt: attempt("tool", "b")})
	require.Equal(t, subjects.Step(attempt("tool", "b"), 0), receive(t, got, "another step").Subject)
}

func TestARepairIsRefusedWhileTheStepIsPending(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	tool := register(t, s, "tool", 10)
	a := attempt("tool", "a")
	dispatch(t, s, kv.Dispatch{Attempt: a})
	dispatch(t, s, kv.Dispatch{Attempt: a, Repair: 1}) // waiting
	p, got := pull(t, s, tool, 10)
	d := receive(t, got, "the step")
	dispatch(t, s, kv.Dispatch{Attempt: a, Repair: 2}) // leased
	b := attempt("tool", "b")
	dispatch(t, s, kv.Dispatch{Attempt: b, At: time.Now().Add(time.Hour)})
	dispatch(t, s, kv.Dispatch{Attempt: b, Repair: 1}) // scheduled
	pending, err := s.Pending(within(t, 5*time.Second), 0, a.Partition())
	require.NoError(t, err)
	require.Equal(t, map[string]bool{a.MessageID(): true, b.MessageID(): true}, pending)
	require.NoError(t, s.Conn().Flush())
	require.Empty(t, got)

	require.NoError(t, d.Ack())
	p.Release()
	require.Eventually(t, func() bool { return pendingAcks(t, s, tool) == 0 }, 5*time.Second, time.Millisecond)
	dispatch(t, s, kv.Dispatch{Attempt: a, Repair: 3}) // gone: now it is needed
	require.Equal(t, subjects.Step(a, 0), receive(t, got, "the repaired step").Subject)
	require.NoError(t, s.PurgeAttempt(within(t, 5*time.Second), b, 0))
	dispatch(t, s, kv.Dispatch{Attempt: b, Repair: 2})
	require.Equal(t, subjects.Step(b, 0), receive(t, got, "the repaired step").Subject)
}

func TestAScheduledDispatchComesInTime(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 10)
	a := attempt("tool", "a")
	for i, delay := range []time.Duration{300 * time.Millisecond, 850 * time.Millisecond, 1300 * time.Millisecond} {
		a.Number = i + 1
		at := time.Now().Add(delay)
		header := nats.Header{subjects.HeaderKey: {a.Key()}, subjects.HeaderAttempt: {"2"}, subjects.HeaderTraceparent: {"00-x"}}
		dispatch(t, s, kv.Dispatch{Attempt: a, Header: header, Body: []byte(`{"x": 1.0}`), At: at})
		d := receive(t, got, "the scheduled step")
		require.WithinRange(t, time.Now(), at, at.Add(time.Second))
		require.Equal(t, subjects.Step(a, 0), d.Subject)
		require.Equal(t, `{"x": 1.0}`, string(d.Data))
		require.Equal(t, a.Key(), d.Header.Get(subjects.HeaderKey))
		require.Equal(t, "2", d.Header.Get(subjects.HeaderAttempt))
		require.Equal(t, "00-x", d.Header.Get(subjects.HeaderTraceparent))
		require.Equal(t, 1, d.Delivered)
		t.Logf("%v asked for, %v late", delay, time.Since(at))
		pending, err := s.Pending(within(t, 5*time.Second), 0, a.Partition())
		require.NoError(t, err)
		require.Len(t, pending, 1, "the schedule itself is gone")
		require.NoError(t, d.Ack())
	}
	a.Number = 9 // a time that has passed
	dispatch(t, s, kv.Dispatch{Attempt: a, At: time.Now().Add(-time.Hour)})
	receive(t, got, "a step scheduled in the past")
}

func TestADispatchThatCanNeverSucceedSaysSo(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	failed := make(chan error, 1)
	body := make([]byte, 2<<20)
	s.DispatchAsync(context.Background(), kv.Dispatch{Attempt: attempt("tool", "a"), Body: body}, func(err error) { failed <- err })
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(receive(t, failed, "the refusal")))
}

func TestAFullStepStreamIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	limitStream(t, s, "STEPS_0", 1000)
	a := attempt("tool", "a")
	dispatched := make(chan error, 1)
	s.DispatchAsync(within(t, 30*time.Second), kv.Dispatch{Attempt: a, Body: make([]byte, 5000)}, func(err error) { dispatched <- err })
	short := make(chan error, 1)
	s.DispatchAsync(within(t, 300*time.Millisecond), kv.Dispatch{Attempt: attempt("tool", "b"), Body: make([]byte, 5000)}, func(err error) { short <- err })
	require.Equal(t, fault.StoreFull, fault.CodeOf(receive(t, short, "giving up")))
	require.Empty(t, dispatched)
	limitStream(t, s, "STEPS_0", -1)
	require.NoError(t, receive(t, dispatched, "the dispatch"))
}
