package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(processURL); url != "" {
		if err := workerProcess(url); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString("goroutines left: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// patient bounds every wait of a test; nothing takes that long unless it is broken.
const patient = 2 * time.Minute

// world is a server with Stepjet's assets, and the test in the role of the orchestrator.
type world struct {
	t     testing.TB
	srv   *embedded.Server
	nc    *nats.Conn
	js    nats.JetStreamContext
	store *kv.Store
	logs  *logBook
	steps atomic.Int32 // given out by run
}

// start sets up a server. AckWait is long unless the test is about leases.
func start(t testing.TB, cfg kv.Config, opts ...func(*embedded.Options)) *world {
	t.Helper()
	w := &world{t: t, srv: natstest.Start(t, opts...), logs: &logBook{}}
	w.nc = natstest.Connect(t, w.srv)
	if cfg.AckWait == 0 {
		cfg.AckWait = 30 * time.Second
	}
	store, err := kv.Setup(w.ctx(), w.nc, cfg)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	w.store = store
	w.js, err = w.nc.JetStream()
	require.NoError(t, err)
	return w
}

// ctx returns a context that ends with the test, and before a hanging one is killed.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	w.t.Cleanup(cancel)
	return ctx
}

// registrar answers registrations, as an orchestrator does.
func (w *world) registrar() {
	w.t.Helper()
	_, err := w.nc.Subscribe(subjects.RegisterFilter, func(m *nats.Msg) {
		t, err := w.store.Registry.Register(context.Background(), m.Data)
		reply := nats.NewMsg(m.Reply)
		if err != nil {
			reply.Header[subjects.HeaderStatus] = []string{subjects.StatusError}
			reply.Data, _ = json.Marshal(fault.As(err))
		} else {
			reply.Data, _ = json.Marshal(t)
		}
		_ = m.RespondMsg(reply)
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.nc.Flush())
}

// running is a worker that runs.
type running struct {
	w    *world
	stop context.CancelFunc
	done chan struct{}
	err  error
	*Worker
}

// worker runs a worker on a connection of its own until the test ends, and waits until it is ready.
func (w *world) worker(c Config, tools func(*Worker)) *running {
	w.t.Helper()
	r := w.launch(natstest.Connect(w.t, w.srv), c, tools)
	r.awaitReady()
	return r
}

func (w *world) launch(nc *nats.Conn, c Config, tools func(*Worker)) *running {
	w.t.Helper()
	if c.Logger == nil {
		c.Logger = w.logs.logger()
	}
	worker, err := New(nc, c)
	require.NoError(w.t, err)
	tools(worker)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{w: w, stop: cancel, done: make(chan struct{}), Worker: worker}
	go func() {
		defer close(r.done)
		r.err = worker.Run(ctx)
	}()
	w.t.Cleanup(func() { r.end() })
	return r
}

func (r *running) awaitReady() {
	r.w.t.Helper()
	select {
	case <-r.Ready():
	case <-r.done:
		require.FailNow(r.w.t, "the worker ended before it was ready", "%v\n%s", r.err, r.w.logs)
	case <-time.After(patient):
		require.FailNow(r.w.t, "the worker is not ready", "%s", r.w.logs)
	}
}

// end stops the worker and gives what Run returned.
func (r *running) end() error {
	r.w.t.Helper()
	r.stop()
	select {
	case <-r.done:
	case <-time.After(patient):
		require.FailNow(r.w.t, "the worker doesn't end", "%s", r.w.logs)
	}
	return r.err
}

// attempt names attempt 1 of step s of a run whose plan record it writes.
func (w *world) attempt(tool, run, step string) subjects.Attempt {
	w.t.Helper()
	a := subjects.Attempt{Run: subjects.NewRun("acme", run), Tool: tool, Step: step, Number: 1}
	entry, err := w.store.Ledger.Read(w.ctx(), subjects.PlanRecord(a.Run, w.store.Ledger.Shards()))
	if err == nil {
		a.Generation = entry.Seq
		return a
	}
	_, seq, err := w.store.Ledger.Create(w.ctx(), subjects.PlanRecord(a.Run, w.store.Ledger.Shards()), nats.Header{}, []byte(`{}`), nil)
	require.NoError(w.t, err)
	a.Generation = seq
	return a
}

// header is what an orchestrator would send with the attempt.
func (w *world) header(a subjects.Attempt) wire.Step {
	return wire.Step{Result: subjects.StepRecord(a, w.store.Ledger.Shards()), Key: a.Key(), Attempt: a.Number, Timeout: time.Minute}
}

// dispatch sends an attempt to the workers; edit changes its headers.
func (w *world) dispatch(a subjects.Attempt, args string, edit ...func(*wire.Step)) {
	w.t.Helper()
	step := w.header(a)
	for _, f := range edit {
		f(&step)
	}
	w.send(kv.Dispatch{Attempt: a, Shard: w.shard(a.Tool), Header: step.Header(), Body: []byte(args)})
}

func (w *world) send(d kv.Dispatch) {
	w.t.Helper()
	done := make(chan error, 1)
	w.store.Queue.DispatchAsync(w.ctx(), d, func(err error) { done <- err })
	require.NoError(w.t, <-done)
}

func (w *world) shard(tool string) int {
	w.t.Helper()
	t, err := w.store.Registry.Tool(w.ctx(), tool)
	require.NoError(w.t, err)
	return t.Shard
}

// result waits for an attempt's record.
func (w *world) result(a subjects.Attempt) wire.Result {
	w.t.Helper()
	var r wire.Result
	w.eventually(func() bool {
		entry, err := w.store.Ledger.Read(context.Background(), subjects.StepRecord(a, w.store.Ledger.Shards()))
		if err == nil {
			r = wire.ParseResult(entry.Header, entry.Data)
		}
		return err == nil
	}, "no record of %s", a.MessageID())
	return r
}

// recorded reports whether an attempt has a record now.
func (w *world) recorded(a subjects.Attempt) bool {
	w.t.Helper()
	_, err := w.store.Ledger.Read(w.ctx(), subjects.StepRecord(a, w.store.Ledger.Shards()))
	if err != nil {
		require.Equal(w.t, fault.NotFound, fault.CodeOf(err))
	}
	return err == nil
}

// run dispatches one step and gives its record.
func (w *world) run(tool, args string, edit ...func(*wire.Step)) wire.Result {
	w.t.Helper()
	a := w.attempt(tool, "run-of-"+w.t.Name(), fmt.Sprint("s", w.steps.Add(1)))
	w.dispatch(a, args, edit...)
	return w.result(a)
}

func (w *world) consumer(tool string) *nats.ConsumerInfo {
	w.t.Helper()
	info, err := w.js.ConsumerInfo(subjects.StepsStream(w.shard(tool)), subjects.Durable(tool))
	require.NoError(w.t, err)
	return info
}

// settled waits until no step of the tool is leased or waiting.
func (w *world) settled(tool string) {
	w.t.Helper()
	w.eventually(func() bool {
		info := w.consumer(tool)
		return info.NumAckPending == 0 && info.NumPending == 0
	}, "steps of %s are still leased or waiting", tool)
}

func (w *world) eventually(f func() bool, format string, args ...any) {
	w.t.Helper()
	require.Eventually(w.t, f, patient, 5*time.Millisecond, append([]any{format + "\n%s"}, append(args, w.logs)...)...)
}

// await receives from a channel, or fails.
func await[T any](w *world, ch <-chan T, what string) T {
	w.t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patient):
		require.FailNow(w.t, "nothing came: "+what, "%s", w.logs)
		panic("not reached")
	}
}

// logBook keeps what workers log.
type logBook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBook) count(text string) int { return strings.Count(l.String(), text) }

func (l *logBook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type empty struct{}
