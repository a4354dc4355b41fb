package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// register puts tools into the registry without a worker that stays.
func (w *world) register(tools func(*Worker)) {
	w.t.Helper()
	require.NoError(w.t, w.worker(Config{}, tools).end())
}

// loseDelivery takes the tool's next step, as a worker that dies does, and has it handed out again at once.
func (w *world) loseDelivery(tool string) {
	w.t.Helper()
	sub, err := w.js.PullSubscribe(subjects.ToolFilter(tool, w.shard(tool)), "", nats.Bind(subjects.StepsStream(w.shard(tool)), subjects.Durable(tool)))
	require.NoError(w.t, err)
	msgs, err := sub.Fetch(1, nats.MaxWait(patient))
	require.NoError(w.t, err)
	require.NoError(w.t, msgs[0].Nak())
	require.NoError(w.t, sub.Unsubscribe())
	require.NoError(w.t, w.nc.Flush())
}

// redeliver makes the server hand the tool's last delivered step out again, while its worker is at it.
func (w *world) redeliver(tool string) {
	w.t.Helper()
	info := w.consumer(tool)
	subject := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.0", info.Stream, info.Name, info.Delivered.Stream, info.Delivered.Consumer, time.Now().UnixNano())
	require.NoError(w.t, w.nc.Publish(subject, []byte("-NAK")))
	w.eventually(func() bool { return w.consumer(tool).NumRedelivered > 0 }, "nothing is redelivered")
}

// counter hosts a tool that counts its calls and returns at once.
func counter(name string, calls *atomic.Int32, opts ...Option) func(*Worker) {
	return func(worker *Worker) {
		Handle(worker, name, func(context.Context, empty) (empty, error) {
			calls.Add(1)
			return empty{}, nil
		}, opts...)
	}
}

// gate hosts a tool that says when it begins, and returns when told to or when its context ends.
type gate struct {
	begun  chan Info
	open   chan struct{}
	causes chan error
}

func newGate() *gate {
	return &gate{begun: make(chan Info, 16), open: make(chan struct{}), causes: make(chan error, 16)}
}

func (g *gate) tools(name string, opts ...Option) func(*Worker) {
	return func(worker *Worker) {
		Handle(worker, name, func(ctx context.Context, _ empty) (string, error) {
			info, _ := InfoFrom(ctx)
			g.begun <- info
			select {
			case <-g.open:
				return "done by " + info.Worker, nil
			case <-ctx.Done():
				g.causes <- context.Cause(ctx)
				return "", ctx.Err()
			}
		}, opts...)
	}
}

func TestHeartbeatKeepsTheLease(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 3 * time.Second})
	w.registrar()
	g := newGate()
	w.worker(Config{}, g.tools("slow"))
	a := w.attempt("slow", "r", "s1")
	w.dispatch(a, `{}`)
	await(w, g.begun, "the call")
	select {
	case <-g.begun:
		require.Fail(t, "the step was executed twice")
	case <-time.After(7 * time.Second): // more than two leases
	}
	info := w.consumer("slow")
	require.Equal(t, 1, info.NumAckPending)
	require.Zero(t, info.NumRedelivered)
	close(g.open)
	require.Nil(t, w.result(a).Error)
	w.settled("slow")
}

// A worker that is cut off cancels its handlers when their leases have run out; another one takes the step over.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 4 * time.Second}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
	w.registrar()
	way := newProxy(t, w.srv.URL()[len("nats://"):])
	nc, err := nats.Connect("nats://"+way.listener.Addr().String(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	g := newGate()
	cutOff := w.launch(nc, Config{Name: "cut-off", DrainTimeout: time.Second}, g.tools("slow"))
	cutOff.awaitReady()
	a := w.attempt("slow", "r", "s1")
	w.dispatch(a, `{}`)
	require.Equal(t, "cut-off", await(w, g.begun, "the call").Worker)
	w.worker(Config{Name: "other"}, g.tools("slow"))

	way.cut.Store(true)
	require.Equal(t, ErrLeaseLost, await(w, g.causes, "the end of the lease"))
	info := await(w, g.begun, "the redelivery")
	require.Equal(t, "other", info.Worker)
	require.Equal(t, 1, info.Attempt, "the same attempt")
	require.GreaterOrEqual(t, info.Delivery, 2) // the server may hand it to the one it can't reach again
	require.False(t, w.recorded(a), "the cut off worker's error is not the tool's")
	close(g.open)
	require.Equal(t, `"done by other"`, string(w.result(a).Body))
	way.close()
	require.NoError(t, cutOff.end())
}

// bare makes an engine without Run, hosting one tool, for what can't be brought about from outside.
func (w *world) bare(tools func(*Worker)) (*engine, *feed) {
	w.t.Helper()
	worker, err := New(w.nc, Config{Logger: w.logs.logger()})
	require.NoError(w.t, err)
	tools(worker)
	hosted, err := worker.begin()
	require.NoError(w.t, err)
	e := newEngine(worker, hosted, w.store)
	w.t.Cleanup(func() { e.pulse.ticker.Stop(); e.halt() })
	return e, &feed{tool: hosted[0], ackWait: time.Minute, pulling: make(chan struct{})}
}

// hold makes an execution that has no slot to give back.
func (e *engine) hold(f *feed, a subjects.Attempt, step wire.Step) *execution {
	x := e.newExecution(f, &kv.Delivery{StreamSeq: 7, Delivered: 1, Data: []byte(`{}`)}, a, step)
	x.parts.Store(100)
	e.enter(x)
	return x
}

// After its lease ran out, only a success of the handler is of use: an error would spend an attempt that another worker
// is at.
func TestWhatALostLeaseRecords(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	for name, c := range map[string]struct {
		end      func(*execution)
		err      error
		recorded bool
	}{
		"error":     {func(*execution) {}, errors.New("interrupted"), false},
		"success":   {func(*execution) {}, nil, true},
		"timeout":   {(*execution).timeout, nil, false},
		"cancelled": {(*execution).cancelled, nil, false},
	} {
		begun := make(chan struct{})
		e, f := w.bare(func(worker *Worker) {
			Handle(worker, "slow", func(ctx context.Context, _ empty) (string, error) {
				close(begun)
				<-ctx.Done()
				return "", c.err
			})
		})
		a := w.attempt("slow", "r", name)
		x := e.hold(f, a, w.header(a))
		done := make(chan struct{})
		go func() { x.run(); close(done) }()
		<-begun
		x.lost.Store(true)
		c.end(x)
		x.leaseLost()
		<-done
		require.True(t, e.open.wait(w.ctx()), name)
		require.Equal(t, c.recorded, w.recorded(a), name)
	}
}

func TestRedeliveryOfARecordedAttempt(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("count", &calls)
	w.register(tools)
	a := w.attempt("count", "r", "s1")
	w.dispatch(a, `{}`)
	w.loseDelivery("count")
	h, body := wire.Result{Body: []byte(`"the first worker's"`)}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(a, 1), h, body, nil)
	require.NoError(t, err)
	w.worker(Config{}, tools)
	w.settled("count")
	require.Zero(t, calls.Load())

	b := w.attempt("count", "r", "s2") // without a record, a redelivery is executed
	require.NoError(t, w.store.Ledger.PurgeSubject(w.ctx(), subjects.StepRecord(a, 1)))
	w.dispatch(b, `{}`)
	require.Nil(t, w.result(b).Error)
	require.EqualValues(t, 1, calls.Load())
}

// A message that an owner sent since it believed the one before lost may come right behind the record of that one: its
// worker looks first, on its first delivery too.
func TestARepairOfARecordedAttempt(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("count", &calls)
	w.register(tools)
	repair := func(a subjects.Attempt) {
		step := w.header(a)
		w.send(kv.Dispatch{Attempt: a, Shard: w.shard(a.Tool), Header: step.Header(), Body: []byte(`{}`), Repair: 1})
	}
	a := w.attempt("count", "r", "s1")
	repair(a)
	h, body := wire.Result{Body: []byte(`"the first worker's"`)}.Message()
	_, _, err := w.store.Ledger.Create(w.ctx(), subjects.StepRecord(a, 1), h, body, nil)
	require.NoError(t, err)
	w.worker(Config{}, tools)
	w.settled("count")
	require.Zero(t, calls.Load())

	b := w.attempt("count", "r", "s2") // without a record, it is executed
	repair(b)
	require.Nil(t, w.result(b).Error)
	require.EqualValues(t, 1, calls.Load())
}

func TestRedeliveryIsNotAnAttempt(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	close(g.open)
	w.register(g.tools("t"))
	a := w.attempt("t", "r", "s1")
	w.dispatch(a, `{}`)
	w.loseDelivery("t")
	w.loseDelivery("t")
	w.worker(Config{MaxDeliveries: 3}, g.tools("t"))
	require.Nil(t, w.result(a).Error)
	info := await(w, g.begun, "the call")
	require.Equal(t, 1, info.Attempt)
	require.Equal(t, 3, info.Delivery)
}

func TestWorkerLost(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("count", &calls)
	w.register(tools)
	a := w.attempt("count", "r", "s1")
	w.dispatch(a, `{}`)
	for range 5 {
		w.loseDelivery("count")
	}
	w.worker(Config{}, tools)
	r := w.result(a)
	require.NotNil(t, r.Error)
	require.Equal(t, fault.WorkerLost, r.Error.Code)
	require.False(t, r.Error.Retryable)
	require.Contains(t, r.Error.Message, "5 times")
	require.Zero(t, calls.Load())
	w.settled("count")
}

func TestMaxDeliveries(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("count", &calls)
	w.register(tools)
	a, b := w.attempt("count", "r", "s1"), w.attempt("count", "r", "s2")
	w.dispatch(a, `{}`)
	w.loseDelivery("count")
	w.worker(Config{MaxDeliveries: 1}, tools)
	require.Equal(t, fault.WorkerLost, w.result(a).Error.Code)
	w.dispatch(b, `{}`)
	require.Nil(t, w.result(b).Error)
	require.EqualValues(t, 1, calls.Load())
}

// A server that is restarted forgets how fresh a lease is. The execution goes on, and is the only one.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, kv.Config{AckWait: 3 * time.Second}, func(o *embedded.Options) { o.Listen, o.Dir = "127.0.0.1:0", dir })
	w.registrar()
	address := w.srv.URL()[len("nats://"):]
	nc, err := nats.Connect(w.srv.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	g := newGate()
	worker := w.launch(nc, Config{}, g.tools("slow"))
	worker.awaitReady()
	a := w.attempt("slow", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	await(w, g.begun, "the call")
	w.srv.Shutdown()
	close(g.open) // the result comes while there is no server, for longer than the lease lasts
	require.Never(t, func() bool { return w.logs.count("the lease ran out") > 0 }, 4*time.Second, 50*time.Millisecond,
		"a result is no longer a handler's to lose")
	again, err := embedded.Start(embedded.Options{Dir: dir, Listen: address})
	require.NoError(t, err)
	t.Cleanup(again.Shutdown)
	after, err := nats.Connect(again.URL())
	require.NoError(t, err)
	t.Cleanup(after.Close)
	store, err := kv.Open(w.ctx(), after)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	w.store = store
	w.js, err = after.JetStream()
	require.NoError(t, err)
	require.Nil(t, w.result(a).Error)
	w.settled("slow")
	require.Empty(t, g.begun, "it was executed once")
	require.NoError(t, worker.end())
}

// A server that hands a step out again to the worker that is still at it: there is one execution, one record, and
// nothing stays leased. The same where the step lies in the queue twice.
func TestRedeliveryJoinsTheExecution(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	w.worker(Config{}, g.tools("slow"))
	a := w.attempt("slow", "r", "s1")
	claimed := func(s *wire.Step) { s.Claim = subjects.ClaimRecord(a, 1) }
	w.dispatch(a, `{}`, claimed)
	await(w, g.begun, "the call")
	w.redeliver("slow")
	step := w.header(a)
	claimed(&step)
	require.NoError(t, w.nc.PublishMsg(&nats.Msg{Subject: subjects.Step(a, w.shard("slow")), Header: step.Header(), Data: []byte(`{}`)}))
	w.eventually(func() bool { return w.consumer("slow").NumAckPending == 2 }, "the duplicate is not delivered")
	close(g.open)
	require.Nil(t, w.result(a).Error)
	w.settled("slow")
	require.Empty(t, g.begun, "it was executed once")
}
