package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// A step that was in the hands of a worker that died is executed alone, so that it can take no other with it.
func TestARedeliveredStepIsExecutedAlone(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{}
	w.register(b.tools(3, long))
	poison := w.person("r", "poison")
	w.loseDelivery(create)
	others := w.people("r", 3)
	w.worker(Config{}, b.tools(3, long))
	for _, a := range append(others, poison) {
		require.Nil(t, w.result(a).Error)
	}
	sizes := b.sizes()
	slices.Sort(sizes)
	require.Equal(t, []int{1, 3}, sizes)
	for _, c := range b.calls {
		require.Equal(t, len(c.emails) == 1, slices.Contains(c.emails, "poison"))
	}
	w.settled(create)
}

func TestBatchOfAnAtMostOnceTool(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{}
	once := func(o *tool.Orchestration) { o.Delivery = tool.AtMostOnce }
	w.register(b.tools(5, long, once))
	var all []subjects.Attempt
	for _, step := range []string{"s1", "s2", "over", "taken", "lost"} {
		a := w.attempt(create, "r", step)
		if step == "over" {
			a.Generation++ // of a run that is over
		}
		if step == "taken" { // by a duplicate of the message
			_, _, err := w.store.Ledger.Create(w.ctx(), subjects.ClaimRecord(a, 1), nil, []byte(`{"nonce":"another","seq":1000}`), nil)
			require.NoError(t, err)
		}
		w.dispatch(a, `{"email":"`+step+`"}`, claims(a))
		if step == "lost" {
			info, err := w.js.StreamInfo(subjects.StepsStream(w.shard(create)))
			require.NoError(t, err)
			_, _, err = w.store.Ledger.Create(w.ctx(), subjects.ClaimRecord(a, 1), nil, fmt.Appendf(nil, `{"nonce":"another","seq":%d}`, info.State.LastSeq), nil)
			require.NoError(t, err)
		}
		all = append(all, a)
	}
	b.do = func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		for _, s := range c.steps {
			a := all[slices.IndexFunc(all, func(a subjects.Attempt) bool { return a.Step == s.Step })]
			if _, there := w.claimOf(a); !there {
				return nil, fmt.Errorf("%s was not claimed", s.Step)
			}
		}
		return made(c), nil
	}
	w.worker(Config{}, b.tools(5, long, once))
	for _, a := range all[:2] {
		require.Nil(t, w.result(a).Error)
	}
	w.settled(create)
	require.Equal(t, []int{2}, b.sizes(), "those refused dropped out")
	require.False(t, w.recorded(all[2]))
	require.False(t, w.recorded(all[3]))
	require.Equal(t, fault.OutcomeUnknown, w.result(all[4]).Error.Code, "a worker that claimed it was lost")
}

func TestCancelInABatch(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	causes, open := make(chan error, 4), make(chan struct{})
	b := &batched{begun: make(chan batchCall, 4), do: func(ctx context.Context, c batchCall) ([]ItemResult[string], error) {
		select {
		case <-ctx.Done():
			causes <- context.Cause(ctx)
		case <-open:
		}
		return made(c), nil
	}}
	worker := w.worker(Config{}, b.tools(3, long))
	all := w.people("r", 3)
	await(w, b.begun, "the call")
	require.NoError(t, w.nc.Publish(subjects.Cancel(all[0]), nil))
	require.Equal(t, fault.Cancelled, w.result(all[0]).Error.Code)
	require.Empty(t, causes, "the others go on")
	close(open)
	for _, a := range all[1:] {
		require.Nil(t, w.result(a).Error)
	}
	require.Equal(t, fault.Cancelled, w.result(all[0]).Error.Code, "what the handler made of it comes too late")
	w.settled(create)

	open = make(chan struct{})
	all = w.people("r2", 3)
	await(w, b.begun, "the second call")
	for _, a := range all {
		require.NoError(t, w.nc.Publish(subjects.Cancel(a), nil))
	}
	require.Equal(t, ErrCancelled, await(w, causes, "the end of a call whose steps were all cancelled"))
	for _, a := range all {
		require.Equal(t, fault.Cancelled, w.result(a).Error.Code)
	}
	w.settled(create)
	require.Zero(t, worker.Abandoned())
}

// A step that is cancelled while it waits for its batch, and one whose deadline passes in the call, drop out alone.
func TestStepsDropOutOfABatch(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	open := make(chan struct{})
	b := &batched{begun: make(chan batchCall, 4), do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		<-open
		return made(c), nil
	}}
	w.worker(Config{}, b.tools(3, long))
	early := w.person("r", "early")
	w.eventually(func() bool { // a cancel that comes before the step has come to the worker is nobody's
		require.NoError(t, w.nc.Publish(subjects.Cancel(early), nil))
		return w.recorded(early)
	}, "it is not cancelled")
	require.Equal(t, fault.Cancelled, w.result(early).Error.Code)
	brief := w.person("r", "brief", func(s *wire.Step) { s.Timeout = 300 * time.Millisecond })
	fine := w.person("r", "fine")
	c := await(w, b.begun, "the call")
	slices.Sort(c.emails)
	require.Equal(t, []string{"brief", "fine"}, c.emails)
	require.WithinDuration(t, time.Now().Add(time.Minute), c.info.Deadline, 20*time.Second, "that of the last")
	require.Equal(t, fault.Timeout, w.result(brief).Error.Code)
	close(open)
	require.Nil(t, w.result(fine).Error)
	w.settled(create)
}

// A handler that ignores its context keeps one slot, not one for each step; when the last slot is lost, what waits for
// one is left to others.
func TestAbandonedBatch(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 2 * time.Second})
	w.registrar()
	open := make(chan struct{})
	b := &batched{begun: make(chan batchCall, 4), do: func(_ context.Context, c batchCall) ([]ItemResult[string], error) {
		<-open
		return made(c), nil
	}}
	stuck := w.worker(Config{Slots: 1}, b.tools(2, long))
	brief := func(s *wire.Step) { s.Timeout = 300 * time.Millisecond }
	one, two := w.person("r", "s1", brief), w.person("r", "s2", brief)
	await(w, b.begun, "the call")
	for _, a := range []subjects.Attempt{one, two} {
		require.Equal(t, fault.Timeout, w.result(a).Error.Code)
	}
	w.eventually(func() bool { return stuck.Abandoned() == 1 }, "it is not counted")
	three := w.people("r2", 2)
	other := &batched{}
	w.worker(Config{}, other.tools(2, 20*time.Millisecond))
	for _, a := range three {
		require.Nil(t, w.result(a).Error)
	}
	close(open)
	w.eventually(func() bool { return stuck.Abandoned() == 0 }, "its slot is not free again")
	w.settled(create)
}

// A worker that is cut off in the middle of a batch: its steps go to another, each alone and as the same attempt.
func TestLeasesOfABatchAreLost(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 4 * time.Second}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w.registrar()
	way := newProxy(t, w.srv.URL()[len("nats://"):])
	nc, err := nats.Connect("nats://"+way.listener.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	causes := make(chan error, 1)
	b := &batched{begun: make(chan batchCall, 10), do: func(ctx context.Context, c batchCall) ([]ItemResult[string], error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	}}
	cutOff := w.launch(nc, Config{Name: "cut-off", DrainTimeout: time.Second}, b.tools(3, long))
	cutOff.awaitReady()
	all := w.people("r", 3)
	require.Len(t, await(w, b.begun, "the call").emails, 3)
	other := &batched{}
	w.worker(Config{Name: "other"}, other.tools(3, long))
	way.cut.Store(true)
	require.Equal(t, ErrLeaseLost, await(w, causes, "the end of the leases"))
	for _, a := range all {
		r := w.result(a)
		require.Nil(t, r.Error)
		require.Equal(t, "other", r.Worker)
	}
	require.Equal(t, []int{1, 1, 1}, other.sizes())
	way.close()
	require.NoError(t, cutOff.end())
}

func TestLargeArgumentsInABatch(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	b := &batched{}
	w.register(b.tools(2, long))
	small, large := w.person("r", "small"), w.attempt(create, "r", "large")
	email := strings.Repeat("x", wire.InlineLimit)
	handle, err := w.store.Archive.PutBlob(w.ctx(), "", large.BlobName("args"), []byte(`{"email":"`+email+`"}`))
	require.NoError(t, err)
	w.dispatch(large, "", func(s *wire.Step) { s.Handle = handle })
	w.worker(Config{}, b.tools(2, long))
	require.Nil(t, w.result(small).Error)
	r := w.result(large)
	require.Nil(t, r.Error)
	require.NotNil(t, r.Handle, "each result goes its own way")
	require.Equal(t, []int{2}, b.sizes())
	w.settled(create)
}
