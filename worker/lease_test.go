package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
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
	sub, err := w.js.PullSubscribe("", "", nats.Bind(subjects.StepsStream(w.shard(tool)), subjects.Durable(tool)))
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
	w := start(t, kv.Config{AckWait: time.Second})
	w.registrar()
	g := newGate()
	w.worker(Config{}, g.tools("slow"))
	a := w.attempt("slow", "r", "s1")
	w.dispatch(a, `{}`)
	await(w, g.begun, "the call")
	select {
	case <-g.begun:
		require.Fail(t, "the step was executed twice")
	case <-time.After(3500 * time.Millisecond): // several leases long
	}
	info := w.consumer("slow")
	require.Equal(t, 1, info.NumAckPending)
	require.Zero(t, info.NumRedelivered)
	close(g.open)
	require.Nil(t, w.result(a).Error)
	w.settled("slow")
}

// proxy is a way to the server that can be cut without either side being told.
type proxy struct {
	listener net.Listener
	cut      atomic.Bool
	mu       sync.Mutex
	conns    []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l}
	t.Cleanup(p.close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, c, s)
			p.mu.Unlock()
			go p.copy(c, s)
			go p.copy(s, c)
		}
	}()
	return p
}

// copy carries bytes over, or drops them while the way is cut.
func (p *proxy) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			_ = to.Close()
			return
		}
		if p.cut.Load() {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

// A worker that is cut off cancels its handlers when their leases have run out; another one takes the step over.
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 2 * time.Second}, func(o *embedded.Options) { o.Listen = "127.0.0.1:0" })
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

	began := time.Now()
	way.cut.Store(true)
	require.Equal(t, ErrLeaseLost, await(w, g.causes, "the end of the lease"))
	require.Less(t, time.Since(began), 4*time.Second)
	info := await(w, g.begun, "the redelivery")
	require.Equal(t, "other", info.Worker)
	require.Equal(t, 1, info.Attempt, "the same attempt")
	require.Equal(t, 2, info.Delivery)
	require.False(t, w.recorded(a), "the cut off worker's error is not the tool's")
	close(g.open)
	require.Equal(t, `"done by other"`, string(w.result(a).Body))
	way.close()
	require.NoError(t, cutOff.end())
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
	_, _, err := w.store.Create(w.ctx(), subjects.StepRecord(a, 1), h, body, nil)
	require.NoError(t, err)
	w.worker(Config{}, tools)
	w.settled("count")
	require.Zero(t, calls.Load())

	b := w.attempt("count", "r", "s2") // without a record, a redelivery is executed
	require.NoError(t, w.store.PurgeSubject(w.ctx(), subjects.StepRecord(a, 1)))
	w.dispatch(b, `{}`)
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
	w.worker(Config{}, g.tools("t"))
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

func (w *world) claimOf(a subjects.Attempt) (claimBody, bool) {
	var c claimBody
	entry, err := w.store.Read(context.Background(), subjects.ClaimRecord(a, 1))
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal(entry.Data, &c) == nil
}

// claims is the header of a step of an at_most_once tool.
func claims(a subjects.Attempt) func(*wire.Step) {
	return func(s *wire.Step) { s.Claim = subjects.ClaimRecord(a, 1) }
}

func TestAtMostOnceClaimsFirst(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	a := subjects.Attempt{}
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "pay", func(context.Context, empty) (string, error) {
			if _, there := w.claimOf(a); !there {
				return "", errors.New("executed without a claim")
			}
			return "paid", nil
		})
	})
	a = w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	r := w.result(a)
	require.Nil(t, r.Error)
	c, _ := w.claimOf(a)
	require.NotEmpty(t, c.Nonce)
	require.Equal(t, w.consumer("pay").Delivered.Stream, c.Seq, "the step's sequence")
	w.settled("pay")
}

func TestAtMostOnceAfterALostWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim      func(seq uint64) any
		deliveries int        // at most
		code       fault.Code // of the record; empty for none
	}{
		"executed, perhaps":              {func(seq uint64) any { return claimBody{"another", seq} }, 5, fault.OutcomeUnknown},
		"claimed for another message":    {func(seq uint64) any { return claimBody{"another", seq + 1000} }, 5, ""},
		"claimed by who knows what":      {func(uint64) any { return "?" }, 5, ""},
		"died before it could claim":     {nil, 1, fault.WorkerLost},
		"died often, after it had begun": {func(seq uint64) any { return claimBody{"another", seq} }, 1, fault.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, kv.Config{})
			w.registrar()
			var calls atomic.Int32
			tools := counter("pay", &calls)
			w.register(tools)
			a := w.attempt("pay", "r", "s1")
			w.dispatch(a, `{}`, claims(a))
			w.loseDelivery("pay")
			if c.claim != nil {
				body, err := json.Marshal(c.claim(w.consumer("pay").Delivered.Stream))
				require.NoError(t, err)
				_, _, err = w.store.Create(w.ctx(), subjects.ClaimRecord(a, 1), nats.Header{}, body, nil)
				require.NoError(t, err)
			}
			w.worker(Config{MaxDeliveries: c.deliveries}, tools)
			w.settled("pay")
			require.Zero(t, calls.Load())
			if c.code == "" {
				require.False(t, w.recorded(a))
				return
			}
			require.Equal(t, c.code, w.result(a).Error.Code)
		})
	}
}

func TestAtMostOnceIsExecutedIfNobodyBegan(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	tools := counter("pay", &calls)
	w.register(tools)
	a := w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a))
	w.loseDelivery("pay")
	w.worker(Config{}, tools)
	require.Nil(t, w.result(a).Error)
	require.EqualValues(t, 1, calls.Load())
}

func TestAtMostOnceOfAFinishedRun(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{}, counter("pay", &calls))
	a := w.attempt("pay", "r", "s1")
	a.Generation++ // a zombie: the plan that stands is another's
	w.dispatch(a, `{}`, claims(a))
	w.eventually(func() bool { return w.consumer("pay").Delivered.Consumer == 1 }, "not delivered")
	w.settled("pay")
	require.Zero(t, calls.Load())
	require.False(t, w.recorded(a))
	_, there := w.claimOf(a)
	require.False(t, there, "the claim is taken away again")
}

func TestAtMostOnceTimeoutIsUnknown(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	w.worker(Config{}, g.tools("pay"))
	a := w.attempt("pay", "r", "s1")
	w.dispatch(a, `{}`, claims(a), func(s *wire.Step) { s.Timeout = 20 * time.Millisecond })
	r := w.result(a)
	require.Equal(t, fault.OutcomeUnknown, r.Error.Code)
	require.False(t, r.Error.Retryable)
	require.Equal(t, ErrTimeout, await(w, g.causes, "the cause"))
}

// The acknowledgement of an execution's own claim may get lost; then the claim is found, and is its own.
func TestOwnClaim(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	a := w.attempt("pay", "r", "s1")
	worker, err := New(w.nc, Config{})
	require.NoError(t, err)
	e := newEngine(worker, nil, w.store)
	t.Cleanup(e.pulse.ticker.Stop)
	mine := claimBody{"mine", 7}
	claimed := func(a subjects.Attempt) (*execution, bool) {
		step := w.header(a)
		step.Claim = subjects.ClaimRecord(a, 1)
		body, err := json.Marshal(mine)
		require.NoError(t, err)
		_, _, err = w.store.Create(w.ctx(), step.Claim, nats.Header{}, body, nil)
		require.NoError(t, err)
		x := e.newExecution(nil, &kv.Delivery{StreamSeq: 7, Delivered: 1}, a, step)
		x.parts.Store(100) // there is no feed to give a slot back to
		e.enter(x)
		return x, x.claimed(mine)
	}
	x, ok := claimed(a)
	require.True(t, ok)
	require.False(t, x.decided.Load())
	zombie := a
	zombie.Generation++
	x, ok = claimed(zombie)
	require.False(t, ok, "its run is over")
	require.True(t, x.decided.Load())
}
