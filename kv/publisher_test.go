package kv_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestThousandsAtOnceAreAllDecided(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	const n = 12_000 // several times what is on its way at once
	var written atomic.Int64
	done := make(chan struct{})
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	for i := range n {
		a.Step = fmt.Sprint(i)
		s.Ledger.CreateAsync(context.Background(), subjects.StepRecord(a, 1), nil, nil, nil, func(d kv.Decision, seq uint64, err error) {
			if d != kv.Written || seq == 0 || err != nil {
				t.Errorf("%v %d %v", d, seq, err)
			}
			if written.Add(1) == n {
				close(done)
			}
		})
	}
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		require.Fail(t, "not all were decided", "%d", written.Load())
	}
	require.Zero(t, s.Inflight())
	last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), 0)
	require.NoError(t, err)
	require.EqualValues(t, n, last)
}

func TestARestartInTheMiddleLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(listen string) *embedded.Server {
		srv, err := embedded.Start(embedded.Options{Dir: dir, Listen: listen})
		require.NoError(t, err)
		t.Cleanup(srv.Shutdown)
		return srv
	}
	srv := start("127.0.0.1:0")
	s := setupOn(t, srv, kv.Config{})
	const n = 6000
	var decided atomic.Int64
	done := make(chan struct{})
	a := subjects.Attempt{Run: subjects.NewRun("t", "r"), Generation: 1, Tool: "tool", Number: 1}
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		for decided.Load() < n/10 {
			time.Sleep(time.Millisecond)
		}
		srv.Shutdown()
		start(srv.URL()[len("nats://"):])
	}()
	for i := range n {
		a.Step = fmt.Sprint(i)
		s.Ledger.CreateAsync(within(t, 2*time.Minute), subjects.StepRecord(a, 1), nil, fmt.Append(nil, i), nil, func(d kv.Decision, _ uint64, err error) {
			if d != kv.Written || err != nil { // also those whose answer was lost are found to be ours
				t.Errorf("%v %v", d, err)
			}
			if decided.Add(1) == n {
				close(done)
			}
		})
		for s.Inflight() > 500 {
			time.Sleep(time.Millisecond)
		}
	}
	<-restarted
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "not all were decided", "%d", decided.Load())
	}
	last, err := s.Ledger.LastSequence(within(t, 2*time.Minute), 0)
	require.NoError(t, err)
	require.EqualValues(t, n, last)
}

func TestAMessageTooLargeIsRefusedAndTheConnectionLives(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	_, _, err := s.Ledger.Create(within(t, 2*time.Minute), "$KV.runs_0.x", nil, make([]byte, 1<<20+1), nil)
	require.Equal(t, fault.MessageTooLarge, fault.CodeOf(err))
	require.ErrorContains(t, err, "1048576")
	d, _ := create(t, s, "$KV.runs_0.x", "y", nil)
	require.Equal(t, kv.Written, d)
}

func TestACreateWithoutAStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := setup(t, kv.Config{})
	_, _, err := s.Ledger.Create(within(t, refusal), "$KV.nowhere.x", nil, nil, nil)
	require.Equal(t, fault.NotReady, fault.CodeOf(err))
	_, _, err = s.Ledger.Create(within(t, 2*time.Minute), "no such subject", nil, nil, nil)
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	_, err = s.Ledger.Read(within(t, 2*time.Minute), "nowhere")
	require.Equal(t, fault.Internal, fault.CodeOf(err))
	_, err = s.Ledger.Read(within(t, 2*time.Minute), "$KV.nowhere.x")
	require.Equal(t, fault.NotReady, fault.CodeOf(err))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = s.Ledger.Read(ended, "$KV.runs_0.x")
	require.Equal(t, fault.Cancelled, fault.CodeOf(err))
}

func TestAStepStreamNeverRunsEmpty(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	setupOn(t, srv, kv.Config{})
	s := setupOn(t, srv, kv.Config{}) // a second setup adds no sentinel
	js, err := jetstream.New(s.Conn())
	require.NoError(t, err)
	steps, err := js.Stream(within(t, 2*time.Minute), "STEPS_0")
	require.NoError(t, err)
	require.EqualValues(t, 1, steps.CachedInfo().State.Msgs)
	first := steps.CachedInfo().State.FirstSeq
	for i := range 40 { // enough for another sentinel
		a := attempt("tool", fmt.Sprint(i))
		dispatch(t, s, kv.Dispatch{Attempt: a, Body: make([]byte, 100<<10)})
		require.NoError(t, s.Queue.PurgeAttempt(within(t, 2*time.Minute), a, 0))
	}
	require.Eventually(t, func() bool {
		info, err := steps.Info(within(t, 2*time.Minute))
		return err == nil && info.State.Msgs == 1 && info.State.FirstSeq > first
	}, 2*time.Minute, 10*time.Millisecond)
}
