package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestTimeout(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	causes := make(chan error, 1)
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "wait", func(ctx context.Context, _ empty) (empty, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return empty{}, ctx.Err()
		})
	})
	r := w.run("wait", `{}`, func(s *wire.Step) { s.Timeout = 300 * time.Millisecond })
	require.Equal(t, fault.Timeout, r.Error.Code)
	require.Equal(t, "the execution took longer than 300ms", r.Error.Message)
	require.True(t, r.Error.Retryable)
	require.Equal(t, ErrTimeout, await(w, causes, "the cause"))

	r = w.run("wait", `{}`, func(s *wire.Step) { s.Deadline = time.Now().Add(4 * time.Second) })
	require.Equal(t, fault.Timeout, r.Error.Code, "the step's deadline bounds it as well")
	require.Contains(t, r.Error.Message, "deadline")
	require.Equal(t, ErrTimeout, await(w, causes, "the cause"))

	r = w.run("wait", `{}`, func(s *wire.Step) { s.Deadline = time.Now().Add(-time.Millisecond) })
	require.Equal(t, fault.Timeout, r.Error.Code)
	require.Empty(t, causes, "what comes too late is not executed")
	w.settled("wait")
}

// A handler that ignores its context: the record doesn't wait for it, the lease for so long as one lasts, its slot for
// ever.
func TestAbandonedHandler(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 3 * time.Second})
	w.registrar()
	release, calls := make(chan struct{}), atomic.Int32{}
	worker := w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "stubborn", func(context.Context, empty) (empty, error) {
			if calls.Add(1) == 1 {
				<-release
			}
			return empty{}, nil
		}, Slots(1))
	})
	first, second := w.attempt("stubborn", "r", "s1"), w.attempt("stubborn", "r", "s2")
	w.dispatch(first, `{}`, func(s *wire.Step) { s.Timeout = 300 * time.Millisecond })
	require.Equal(t, fault.Timeout, w.result(first).Error.Code)
	require.Equal(t, 1, w.consumer("stubborn").NumAckPending, "the step keeps its place in the limit")
	w.settled("stubborn")
	require.Equal(t, 1, w.logs.count("a handler is at work long after its step was decided"))
	w.eventually(func() bool { return worker.Abandoned() == 1 }, "the execution is not counted")
	w.eventually(func() bool { return w.logs.count("a handler runs on after its execution was given up") == 1 }, "it is not logged")
	require.Contains(t, w.logs.String(), "level=ERROR", "no slot is left")

	w.dispatch(second, `{}`)
	w.eventually(func() bool { return w.consumer("stubborn").NumPending == 1 }, "the second step is taken")
	require.EqualValues(t, 1, calls.Load(), "its slot is taken")
	close(release)
	require.Nil(t, w.result(second).Error)
	require.Zero(t, worker.Abandoned())
	require.Equal(t, fault.Timeout, w.result(first).Error.Code, "what came afterwards changes nothing")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	begun, causes := make(chan string, 4), make(chan error, 4)
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "wait", func(ctx context.Context, _ empty) (empty, error) {
			info, _ := InfoFrom(ctx)
			begun <- info.Step
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return empty{}, nil
		})
	})
	other, decided, open := w.attempt("wait", "r", "other"), w.attempt("wait", "r", "decided"), w.attempt("wait", "r", "open")
	for _, a := range []subjects.Attempt{other, decided, open} {
		w.dispatch(a, `{}`)
		await(w, begun, "the call")
	}
	h, body := wire.Result{Error: fault.New(fault.Cancelled, "the run was cancelled")}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(decided, 1), h, body, nil)
	require.NoError(t, err)
	require.NoError(t, w.nc.Publish(subjects.Cancel(decided), nil))
	require.Equal(t, ErrCancelled, await(w, causes, "the cancel"))
	require.Equal(t, "the run was cancelled", w.result(decided).Error.Message, "the record that stands")
	require.NoError(t, w.nc.Publish(subjects.Cancel(open), nil))
	require.Equal(t, ErrCancelled, await(w, causes, "the cancel"))
	require.Equal(t, fault.Cancelled, w.result(open).Error.Code)
	w.eventually(func() bool { return w.consumer("wait").NumAckPending == 1 }, "cancelled steps are acknowledged")
	require.Empty(t, causes, "only the attempts that were named")

	zombie := other
	zombie.Generation++
	require.NoError(t, w.nc.Publish(subjects.Cancel(zombie), nil))
	require.NoError(t, w.nc.Publish("cancel.wait.garbage", nil))
	require.NoError(t, w.nc.Publish(subjects.Cancel(other), nil))
	await(w, causes, "the cancel")
	w.settled("wait")
	require.Empty(t, causes)
}

func TestSlotsBoundExecutions(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	w.worker(Config{Slots: 50}, g.tools("slow", Slots(3)))
	var all []subjects.Attempt
	for i := range 10 {
		a := w.attempt("slow", "r", fmt.Sprint("s", i))
		w.dispatch(a, `{}`)
		all = append(all, a)
	}
	for range 3 {
		await(w, g.begun, "the call")
	}
	w.eventually(func() bool { return w.consumer("slow").NumPending == 7 }, "the others don't wait in the queue")
	require.Equal(t, 3, w.consumer("slow").NumAckPending, "no more are taken than there are slots")
	require.Empty(t, g.begun)
	close(g.open)
	for _, a := range all {
		require.Nil(t, w.result(a).Error)
	}
	w.settled("slow")
}
