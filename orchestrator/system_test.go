package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// lease is long enough for a machine on which a process stands still for seconds: a test about leases has a shorter
// one.
const lease = 10 * time.Second

// patience bounds what a test waits for: more than a busy machine takes for what is large, under the race detector.
const patience = 5 * time.Minute

// system is a server, an orchestrator, a worker with test tools, and a client, all in this process.
type system struct {
	t      testing.TB
	srv    *embedded.Server
	nc     *nats.Conn
	client *client.Client
	store  *kv.Store
	tools  *tools
	config orchestrator.Config
	leave  func() // stops the first orchestrator
}

// tools are what the plans of these tests call.
type tools struct {
	mu    sync.Mutex
	calls map[string]int // executions by idempotency key
	gate  chan struct{}  // "gate" waits for it
	over  chan struct{}  // the test is, and nothing waits for its gate any more
	end   func()         // closes over
	begun chan string    // "gate" tells its step
}

func newTools() *tools {
	over := make(chan struct{})
	return &tools{
		calls: map[string]int{}, gate: make(chan struct{}), begun: make(chan string, 100),
		over: over, end: sync.OnceFunc(func() { close(over) }),
	}
}

func (s *tools) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		n += c
	}
	return n
}

func logger(t testing.TB) *slog.Logger {
	if os.Getenv("STEPJET_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("test", t.Name())
}

func start(t testing.TB, change ...func(*orchestrator.Config)) *system {
	t.Helper()
	return startOn(t, natstest.Start(t), change...)
}

func startOn(t testing.TB, srv *embedded.Server, change ...func(*orchestrator.Config)) *system {
	t.Helper()
	s := &system{t: t, srv: srv, nc: natstest.Connect(t, srv), tools: newTools()}
	s.config = orchestrator.Config{Name: "test", Loops: 3, Logger: logger(t), SweepEvery: 300 * time.Millisecond, Store: kv.Config{AckWait: lease}}
	for _, f := range change {
		f(&s.config)
	}
	s.leave = s.orchestrator()
	s.worker()
	var err error
	s.client, err = client.New(context.Background(), s.nc, client.Config{Logger: logger(t)})
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	s.store, err = kv.Open(context.Background(), s.nc)
	require.NoError(t, err)
	t.Cleanup(s.store.Close)
	return s
}

// orchestrator starts one and gives the function that stops it and waits.
func (s *system) orchestrator() (stop func()) {
	s.t.Helper()
	nc := natstest.Connect(s.t, s.srv)
	o, err := orchestrator.New(nc, s.config)
	require.NoError(s.t, err)
	return s.background(o.Run, o.Ready())
}

func (s *system) worker() (stop func()) {
	s.t.Helper()
	nc := natstest.Connect(s.t, s.srv)
	w, err := worker.New(nc, worker.Config{Name: "w", Logger: logger(s.t), SecretsKey: s.config.SecretsKey})
	require.NoError(s.t, err)
	s.tools.register(s.t, w)
	stop = s.background(w.Run, w.Ready())
	s.t.Cleanup(s.tools.end) // before the worker is stopped, which would wait for them
	return stop
}

func (s *system) background(run func(context.Context) error, ready <-chan struct{}) (stop func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	s.t.Cleanup(stop)
	select {
	case <-ready:
	case err := <-done:
		done <- nil
		require.NoError(s.t, err)
		require.Fail(s.t, "a part ended before it was ready")
	case <-time.After(patience):
		require.Fail(s.t, "a part did not become ready")
	}
	return stop
}

var retrying = &tool.Orchestration{
	Retry: &tool.Retry{MaxAttempts: 3}, Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: 250 * time.Millisecond, Max: 250 * time.Millisecond},
}

// patient is for tools that wait for the test, however long a busy machine takes.
var patient = &tool.Orchestration{TimeoutMS: time.Hour.Milliseconds()}

func (s *tools) register(t testing.TB, w *worker.Worker) {
	raw := func(name string, o *tool.Orchestration, schema string, fn func(ctx context.Context, args json.RawMessage) (worker.Output, error)) {
		def := &tool.Definition{Name: name, Description: "test", Orchestration: o}
		if schema != "" {
			def.InputSchema = json.RawMessage(schema)
		}
		require.NoError(t, w.HandleRaw(def, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			if info, ok := worker.InfoFrom(ctx); ok {
				s.mu.Lock()
				s.calls[info.Key]++
				s.mu.Unlock()
			}
			return fn(ctx, args)
		}))
	}
	raw("echo", nil, "", func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: args}, nil
	})
	raw("fail", nil, "", func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		return worker.Output{}, worker.Terminal(fmt.Errorf("no luck"))
	})
	raw("flaky", retrying, "", func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		if info, _ := worker.InfoFrom(ctx); info.Attempt < 3 {
			return worker.Output{}, fmt.Errorf("attempt %d fails", info.Attempt)
		}
		return worker.Output{Body: []byte(`"at last"`)}, nil
	})
	raw("gate", patient, "", func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		s.begun <- info.Step
		select {
		case <-s.gate:
			return worker.Output{Body: args}, nil
		case <-s.over:
			return worker.Output{}, errors.New("the test is over")
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
	})
	raw("big", nil, "", func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct{ Bytes int }
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		b := make([]byte, in.Bytes)
		for i := range b {
			b[i] = 'a' + byte(i%26)
		}
		return worker.Output{Body: fmt.Appendf(nil, `{"text":"%s","n":%d}`, b, in.Bytes)}, nil
	})
	raw("length", nil, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct{ Text string }
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		return worker.Output{Body: fmt.Append(nil, len(in.Text))}, nil
	})
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return c
}

// run runs a plan to its end.
func (s *system) run(plan string, id string) *outcome.Outcome {
	s.t.Helper()
	o, err := s.client.Run(ctx(s.t), []byte(plan), client.SubmitOptions{Run: id})
	require.NoError(s.t, err)
	return o
}

func (s *system) submit(plan string, id string) *client.Run {
	s.t.Helper()
	r, err := s.client.Submit(ctx(s.t), []byte(plan), client.SubmitOptions{Run: id})
	require.NoError(s.t, err)
	return r
}

func (s *system) wait(r *client.Run) *outcome.Outcome {
	s.t.Helper()
	o, err := r.Wait(ctx(s.t))
	require.NoError(s.t, err)
	return o
}

// history reads the finished run as any NATS client can.
func (s *system) history(tenant, id string) *outcome.Run {
	s.t.Helper()
	run := subjects.NewRun(tenant, id)
	var doc *outcome.Run
	require.Eventually(s.t, func() bool {
		d, err := s.store.Archive.History(ctx(s.t), run)
		if err != nil {
			require.Equal(s.t, fault.NotFound, fault.CodeOf(err), "%v", err)
			return false
		}
		doc = d
		return true
	}, patience, 10*time.Millisecond, "no outcome in history")
	return doc
}

func codes(problems []fault.Problem) (list []fault.Code) {
	for _, p := range problems {
		list = append(list, p.Code)
	}
	return list
}

// cancelled is what became of a cancel, where it doesn't matter whose counted.
func cancelled(_ *client.Stopped, err error) error { return err }
