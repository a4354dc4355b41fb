package worker

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/wire"
)

// TestADeadlineIsByTheServersTime: a worker whose clock is ten minutes off, whichever way, begins what is in time,
// refuses what is too late, and gives a handler the time that it has.
func TestADeadlineIsByTheServersTime(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"its clock is slow": 10 * time.Minute, "its clock is fast": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
			w.registrar()
			way := newProxy(t, w.srv.URL()[len("nats://"):])
			way.clock.Store(int64(ahead))
			nc, err := nats.Connect("nats://" + way.listener.Addr().String())
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			left := make(chan time.Duration, 1)
			r := w.launch(nc, Config{}, func(worker *Worker) {
				Handle(worker, "look", func(ctx context.Context, _ empty) (empty, error) {
					at, _ := ctx.Deadline()
					left <- time.Until(at)
					return empty{}, nil
				})
			})
			r.awaitReady()
			servers := func(d time.Duration) time.Time { return time.Now().Add(ahead + d) }

			res := w.run("look", `{}`, func(s *wire.Step) {
				s.Timeout, s.StartBy, s.Deadline = 0, servers(4*time.Minute), servers(5*time.Minute)
			})
			require.Nil(t, res.Error)
			require.WithinDuration(t, servers(0), res.Ended, time.Minute, "a record tells the servers' time")
			require.InDelta(t, 5*time.Minute, <-left, float64(time.Minute))
			res = w.run("look", `{}`, func(s *wire.Step) { s.StartBy = servers(-time.Minute) })
			require.Equal(t, fault.Timeout, res.Error.Code)
			require.False(t, res.Error.Retryable)
			res = w.run("look", `{}`, func(s *wire.Step) { s.Deadline = servers(-time.Minute) })
			require.Equal(t, fault.Timeout, res.Error.Code)
			require.Empty(t, left)
		})
	}
}

// TestWhatWaitedTooLongIsNotBegun: a step that was stored long ago says nothing of now, so a worker asks before it
// takes any.
func TestWhatWaitedTooLongIsNotBegun(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	begun := make(chan struct{}, 1)
	tools := func(worker *Worker) {
		Handle(worker, "look", func(context.Context, empty) (empty, error) {
			begun <- struct{}{}
			return empty{}, nil
		})
	}
	require.NoError(t, w.worker(Config{}, tools).end()) // it is registered, and nobody is there
	a := w.attempt("look", "r", "s")
	by := time.Now().Add(time.Second)
	w.dispatch(a, `{}`, func(s *wire.Step) { s.StartBy = by })
	w.eventually(func() bool { return time.Now().After(by) }, "the time to begin doesn't pass")
	w.worker(Config{}, tools)
	res := w.result(a)
	require.NotNil(t, res.Error)
	require.Equal(t, fault.Timeout, res.Error.Code)
	require.Empty(t, begun)
}

// TestWhatTheClockOfAWorkerHeard: the latest that a server told counts, and without that nothing but what a step says
// itself.
func TestWhatTheClockOfAWorkerHeard(t *testing.T) {
	t.Parallel()
	c := newClock()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	came := c.began.Add(time.Minute)
	require.Equal(t, came, c.at(came))
	c.hear(noon, came)
	require.Equal(t, noon.Add(time.Second), c.at(came.Add(time.Second)))
	c.hear(noon.Add(-time.Hour), came.Add(time.Second)) // of a step that waited
	require.Equal(t, noon.Add(time.Second), c.at(came.Add(time.Second)))
	require.Equal(t, time.Minute, c.until(noon.Add(61*time.Second), came.Add(time.Second)))
	c.hear(noon.Add(time.Hour), came.Add(2*time.Second)) // the machine was suspended
	require.Equal(t, noon.Add(time.Hour), c.at(came.Add(2*time.Second)))
}
