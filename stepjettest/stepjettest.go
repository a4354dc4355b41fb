// Package stepjettest gives a test a whole Stepjet of its own: a NATS server with JetStream on disk, an orchestrator,
// and workers for the tools that the test registers, all in the test's process and all real.
//
//	s := stepjettest.New(t)
//	stepjettest.Register(s, "get_weather", weather)
//	out := s.Run(plan)
//
// Safety: each Stack has a server and a folder of its own, so tests may run in parallel. Liveness: New and Register
// return when what they started is ready, so no test has to wait. Failure: whatever can't be started, and a part that
// ends by itself, fails the test. Everything is stopped when the test ends.
package stepjettest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// patience is for a machine that is busy with much else; nothing waits for so long on one that is not. What a test does
// ends with its own time-out before that, if that is shorter.
const patience = 5 * time.Minute

// drain is how long a worker waits for handlers that still run when the test ends. What they would say counts no more.
const drain = 2 * time.Second

// Stack is a Stepjet that runs for one test. Its methods and Register are for the test's own goroutine, since they end
// the test where something fails.
type Stack struct {
	t      testing.TB
	stack  *dev.Stack
	nc     *nats.Conn
	client *client.Client
	log    *slog.Logger
}

// Option changes one thing about a Stack.
type Option func(*Stack)

// Logger takes what the parts log, on all levels that it is enabled for. Without it, warnings and errors stand in the
// test's output if it fails or is verbose.
func Logger(l *slog.Logger) Option { return func(s *Stack) { s.log = l } }

// New starts a server and an orchestrator, and returns when plans can be submitted. No tool is registered.
func New(t testing.TB, options ...Option) *Stack {
	t.Helper()
	s := &Stack{t: t, log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))}
	for _, o := range options {
		o(s)
	}
	ctx := s.context()
	var err error
	// 127.0.0.1:0 and not in process alone, so that programs under test can connect as well.
	if s.stack, err = dev.Start(ctx, dev.Options{Listen: "127.0.0.1:0", NoWorker: true, Logger: s.log}); err != nil {
		t.Fatalf("starting Stepjet: %v", err)
	}
	t.Cleanup(s.stop)
	if s.nc, err = s.stack.Connect(ctx, "test"); err != nil {
		t.Fatalf("connecting to Stepjet: %v", err)
	}
	t.Cleanup(s.nc.Close)
	if s.client, err = client.New(ctx, s.nc, client.Config{Logger: s.log}); err != nil {
		t.Fatalf("starting the client: %v", err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// URL returns the server's address, for programs under test: NATS_URL.
func (s *Stack) URL() string { return s.stack.URL() }

// Conn returns the connection that Client uses. It is closed when the test ends.
func (s *Stack) Conn() *nats.Conn { return s.nc }

// Client returns a client of the default tenant. It is closed when the test ends.
func (s *Stack) Client() *client.Client { return s.client }

// Run submits a plan under a new run id and waits for what becomes of it, a rejection included. A plan that can't be
// submitted ends the test.
func (s *Stack) Run(plan string) *outcome.Outcome {
	s.t.Helper()
	out, err := s.client.Run(s.context(), []byte(plan), client.SubmitOptions{})
	if err != nil {
		s.t.Fatalf("running the plan: %v", err)
	}
	return out
}

// Register hosts a tool on a worker of its own and returns when steps of it are taken. Its schemas are inferred from
// the types, as worker.Handle does; options change its definition.
func Register[In, Out any](
	s *Stack, name string, fn func(ctx context.Context, in In) (Out, error), options ...worker.Option,
) {
	s.t.Helper()
	s.Host(func(w *worker.Worker) { worker.Handle(w, name, fn, options...) })
}

// Host runs a worker with the tools that add gives it, and returns when steps of them are taken. It is for what
// Register can't say: several tools of one worker, middleware, raw handlers.
func (s *Stack) Host(add func(w *worker.Worker)) {
	s.t.Helper()
	ctx := s.context()
	nc, err := s.stack.Connect(ctx, "worker")
	if err != nil {
		s.t.Fatalf("connecting a worker: %v", err)
	}
	s.t.Cleanup(nc.Close)
	w, err := worker.New(nc, worker.Config{Logger: s.log, DrainTimeout: drain})
	if err != nil {
		s.t.Fatalf("making a worker: %v", err)
	}
	add(w)
	run, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = w.Run(run)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-over
		if err != nil {
			s.t.Errorf("the worker ended: %v", err)
		}
	})
	select {
	case <-w.Ready():
	case <-over:
		s.t.FailNow() // the cleanup says why
	case <-ctx.Done():
		s.t.Fatal("the worker's tools were not registered")
	}
}

// stop ends the stack, and fails the test if a part had ended by itself.
func (s *Stack) stop() {
	select {
	case err := <-s.stack.Done():
		s.t.Errorf("Stepjet ended: %v", err)
	default:
	}
	s.stack.Stop()
}

// context returns a context that ends with the test, or after patience.
func (s *Stack) context() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}
