package kv_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
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
	pending, err := s.Queue.Pending(within(t, 2*time.Minute), 0, a.Partition())
	require.NoError(t, err)
	require.Equal(t, map[string]bool{a.MessageID(): true, b.MessageID(): true}, pending)
	require.NoError(t, s.Conn().Flush())
	require.Empty(t, got)

	require.NoError(t, d.Ack())
	p.Release()
	require.Eventually(t, func() bool { return pendingAcks(t, s, tool) == 0 }, 2*time.Minute, time.Millisecond)
	dispatch(t, s, kv.Dispatch{Attempt: a, Repair: 3}) // gone: now it is needed
	require.Equal(t, subjects.Step(a, 0), receive(t, got, "the repaired step").Subject)
	require.NoError(t, s.Queue.PurgeAttempt(within(t, 2*time.Minute), b, 0))
	dispatch(t, s, kv.Dispatch{Attempt: b, Repair: 2})
	require.Equal(t, subjects.Step(b, 0), receive(t, got, "the repaired step").Subject)
}

// A repair of one step is not taken for a step whose token goes on where that one's ends.
func TestARepairIsNotTakenForAnotherStep(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	tool := register(t, s, "tool", 10)
	_, got := pull(t, s, tool, 10)
	repaired, inner := attempt("tool", "a"), attempt("tool", "a/1")
	inner.Number = 2
	dispatch(t, s, kv.Dispatch{Attempt: repaired, Repair: 2})
	require.Equal(t, subjects.Step(repaired, 0), receive(t, got, "the repair").Subject)
	dispatch(t, s, kv.Dispatch{Attempt: inner})
	require.Equal(t, subjects.Step(inner, 0), receive(t, got, "the other step").Subject)
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
		pending, err := s.Queue.Pending(within(t, 2*time.Minute), 0, a.Partition())
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
	s.Queue.DispatchAsync(context.Background(), kv.Dispatch{Attempt: attempt("tool", "a"), Body: body}, func(err error) { failed <- err })
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(receive(t, failed, "the refusal")))
}

// smallAccount is a server whose account has room for about 100 KiB.
func smallAccount(o *embedded.Options) {
	o.ConfigFile = filepath.Join(o.Dir, "nats.conf")
	conf := `accounts { small { users: [{user: u, password: p}], jetstream { max_file: 100K, max_memory: 100K } } }
no_auth_user: u`
	if err := os.WriteFile(o.ConfigFile, []byte(conf), 0o600); err != nil {
		panic(err)
	}
}

func TestADispatchWaitsForRoom(t *testing.T) {
	t.Parallel()
	s := setupOn(t, natstest.Start(t, smallAccount), kv.Config{})
	run := subjects.NewRun("t", "large")
	g := submit(t, s, run, string(make([]byte, 90<<10)))
	body := make([]byte, 30<<10)
	dispatched, short := make(chan error, 1), make(chan error, 1)
	s.Queue.DispatchAsync(within(t, 2*time.Minute), kv.Dispatch{Attempt: attempt("tool", "a"), Body: body}, func(err error) { dispatched <- err })
	s.Queue.DispatchAsync(within(t, refusal), kv.Dispatch{Attempt: attempt("tool", "b"), Body: body}, func(err error) { short <- err })
	require.Equal(t, fault.StoreFull, fault.CodeOf(receive(t, short, "giving up")))
	require.Empty(t, dispatched)
	_, _, err := s.Ledger.Create(within(t, refusal), s.Ledger.SubmitSubject(subjects.NewRun("t", "x")), nil, body, nil)
	require.Equal(t, fault.StoreFull, fault.CodeOf(err))
	require.NoError(t, s.Ledger.PurgeRun(within(t, 2*time.Minute), run, g))
	require.NoError(t, receive(t, dispatched, "the dispatch"))
}
