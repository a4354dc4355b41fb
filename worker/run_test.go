package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

func TestWaitsForAnOrchestrator(t *testing.T) {
	t.Parallel()
	w := &world{t: t, srv: natstest.Start(t), logs: &logBook{}}
	var calls atomic.Int32
	worker := w.launch(natstest.Connect(t, w.srv), Config{}, func(worker *Worker) {
		counter("a", &calls)(worker)
		counter("b", &calls)(worker)
	})
	w.eventually(func() bool { return w.logs.count("waiting for an orchestrator") == 1 }, "it doesn't say that it waits")
	w.nc = natstest.Connect(t, w.srv)
	store, err := kv.Setup(w.ctx(), w.nc, kv.Config{})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	w.store = store
	w.eventually(func() bool { return w.logs.count("no orchestrator answers") == 1 }, "it doesn't say that nobody answers")
	select {
	case <-worker.Ready():
		require.Fail(t, "ready without an orchestrator")
	default:
	}
	w.registrar()
	worker.awaitReady()
	require.Nil(t, w.run("b", `{}`).Error)
	require.Equal(t, 1, w.logs.count("no orchestrator answers"), "it is said once")
	require.Equal(t, 1, w.logs.count("waiting for an orchestrator"))
}

func TestEndWhileWaiting(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	var calls atomic.Int32
	worker := w.launch(w.nc, Config{}, counter("a", &calls))
	require.NoError(t, worker.end())
	select {
	case <-worker.Ready():
		require.Fail(t, "never ready")
	default:
	}
	bare := &world{t: t, srv: natstest.Start(t), logs: &logBook{}}
	require.NoError(t, bare.launch(natstest.Connect(t, bare.srv), Config{}, counter("a", &calls)).end())
}

func TestRefusedRegistrationEndsRun(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	_, err := w.nc.Subscribe(subjects.RegisterFilter, func(m *nats.Msg) {
		body, _ := fault.New(fault.InvalidTool, "not this one").MarshalJSON()
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, Data: body})
	})
	require.NoError(t, err)
	var calls atomic.Int32
	worker := w.launch(natstest.Connect(t, w.srv), Config{}, counter("a", &calls))
	await(w, worker.done, "the end")
	require.Equal(t, fault.InvalidTool, fault.CodeOf(worker.err))
	require.ErrorContains(t, worker.err, "not this one")
}

// A tool that asks for approvals can't be registered while an orchestrator is alive that does not know of them: its worker waits.
func TestARegistrationWaitsForWhatIsNotReady(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	var asked atomic.Int32
	refusing, err := w.nc.Subscribe(subjects.RegisterFilter, func(m *nats.Msg) {
		asked.Add(1)
		body, _ := fault.New(fault.NotReady, "the orchestrator old does not know of it").MarshalJSON()
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, Data: body})
	})
	require.NoError(t, err)
	var calls atomic.Int32
	worker := w.launch(natstest.Connect(t, w.srv), Config{}, counter("a", &calls))
	w.eventually(func() bool { return asked.Load() > 1 }, "it doesn't ask again")
	require.Positive(t, w.logs.count("the orchestrator old does not know of it"))
	require.NoError(t, refusing.Unsubscribe())
	w.registrar()
	worker.awaitReady()
	require.Nil(t, w.run("a", `{}`).Error)
}

// A worker that is told to end finishes what it has, takes nothing new, and spends no attempt and no delivery.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	worker := w.worker(Config{Name: "old"}, g.tools("slow", Slots(2)))
	var begun []subjects.Attempt
	for _, step := range []string{"s1", "s2"} {
		a := w.attempt("slow", "r", step)
		w.dispatch(a, `{}`)
		await(w, g.begun, "the call")
		begun = append(begun, a)
	}
	worker.stop()
	w.eventually(func() bool { return w.logs.count("draining") == 1 }, "it doesn't drain")
	later := w.attempt("slow", "r", "s3")
	w.dispatch(later, `{}`)
	close(g.open)
	for _, a := range begun {
		require.Equal(t, `"done by old"`, string(w.result(a).Body))
	}
	require.NoError(t, worker.end())
	w.eventually(func() bool { return w.consumer("slow").NumAckPending == 0 }, "not every acknowledgement was sent")
	require.Zero(t, w.consumer("slow").NumRedelivered)
	require.False(t, w.recorded(later))
	w.worker(Config{Name: "new"}, g.tools("slow"))
	require.Equal(t, `"done by new"`, string(w.result(later).Body))
	require.Equal(t, 1, await(w, g.begun, "the call").Delivery, "it was not handed out before")
}

func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 4 * time.Second})
	w.registrar()
	g := newGate()
	worker := w.worker(Config{DrainTimeout: 50 * time.Millisecond}, g.tools("slow"))
	a := w.attempt("slow", "r", "s1")
	w.dispatch(a, `{}`)
	await(w, g.begun, "the call")
	require.NoError(t, worker.end())
	require.Equal(t, ErrDraining, await(w, g.causes, "the cause"))
	require.False(t, w.recorded(a), "no attempt is spent")
	close(g.open)
	w.worker(Config{Name: "new"}, g.tools("slow"))
	info := await(w, g.begun, "the redelivery")
	require.Equal(t, 1, info.Attempt)
	require.Equal(t, 2, info.Delivery)
	require.Equal(t, `"done by new"`, string(w.result(a).Body))
}

// A handler that never returns doesn't keep the worker from ending.
func TestEndWithAStubbornHandler(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	release, begun := make(chan struct{}), make(chan struct{}, 1)
	t.Cleanup(func() { close(release) })
	worker := w.worker(Config{DrainTimeout: 50 * time.Millisecond}, func(worker *Worker) {
		Handle(worker, "stubborn", func(context.Context, empty) (empty, error) {
			begun <- struct{}{}
			<-release
			return empty{}, nil
		})
	})
	a := w.attempt("stubborn", "r", "s1")
	w.dispatch(a, `{}`)
	await(w, begun, "the call")
	require.NoError(t, worker.end())
	require.Contains(t, w.logs.String(), "handlers run on after the worker has ended")
	require.False(t, w.recorded(a))
}

func TestVanishedToolIsRegisteredAgain(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{}, func(worker *Worker) {
		counter("a", &calls)(worker)
		counter("b", &calls)(worker)
	})
	require.Nil(t, w.run("a", `{}`).Error)
	bucket, err := w.js.KeyValue(subjects.ToolsBucket)
	require.NoError(t, err)
	info := w.consumer("a")
	require.NoError(t, w.js.DeleteConsumer(info.Stream, info.Name))
	require.NoError(t, bucket.Delete(subjects.ToolKey("a")))
	w.eventually(func() bool {
		_, err := w.store.Registry.Tool(context.Background(), "a")
		return err == nil
	}, "it is not registered again")
	require.Nil(t, w.run("a", `{}`).Error)
	require.Nil(t, w.run("b", `{}`).Error)
	require.Equal(t, 1, w.logs.count("has vanished"))
}

func TestDeletedConsumerIsRestored(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("a", &calls)
	w.worker(Config{}, func(worker *Worker) {
		tools(worker)
		worker.refresh = 50 * time.Millisecond
	})
	require.Nil(t, w.run("a", `{}`).Error)
	newer, err := w.store.Registry.Register(w.ctx(), []byte(`{"name":"a","description":"another worker's newer one"}`))
	require.NoError(t, err)
	info := w.consumer("a")
	require.NoError(t, w.js.DeleteConsumer(info.Stream, info.Name))
	require.Nil(t, w.run("a", `{}`).Error)
	now, err := w.store.Registry.Tool(w.ctx(), "a")
	require.NoError(t, err)
	require.Equal(t, newer.Digest, now.Digest, "the registry keeps what it has")
}

// Workers that come and go while steps arrive: every step gets exactly one record, and none is redelivered.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.register(counter("count", &calls))
	const rounds, perRound = 15, 30
	var all []subjects.Attempt
	for round := range rounds {
		worker := w.launch(natstest.Connect(t, w.srv), Config{Slots: 1 + round%5}, counter("count", &calls))
		for i := range perRound {
			a := w.attempt("count", fmt.Sprint("r", i%7), fmt.Sprint("s", round, "-", i))
			w.dispatch(a, `{}`)
			all = append(all, a)
		}
		if round%3 != 0 {
			worker.awaitReady()
		}
		require.NoError(t, worker.end())
	}
	w.worker(Config{}, counter("count", &calls))
	for _, a := range all {
		require.Nil(t, w.result(a).Error)
	}
	w.settled("count")
	require.EqualValues(t, rounds*perRound, calls.Load())
}
