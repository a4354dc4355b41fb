// Package example is what the worked examples in examples/ have in common: a whole Stepjet in this process, tools hosted
// under the definitions of a file, a count of their calls, and outcomes that read well.
package example

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/worker"
)

// Options say what a World is made of.
type Options struct {
	// Host gives a worker its tools. It is called for each worker.
	Host func(*worker.Worker)
	// Workers is how many of them host the tools; default 2, so that limits are seen to hold over several.
	Workers int
	// Around wraps every tool; nil for nothing. Tests hold calls back with it.
	Around func(worker.Handler) worker.Handler
	// Logger takes what orchestrator and workers log; nil: nothing is logged.
	Logger *slog.Logger
}

// World is a running Stepjet: a NATS server with a temporary store, an orchestrator, workers and an agent's client.
type World struct {
	Client *client.Client
	Meter  *Meter

	options Options
	server  *embedded.Server
	parts   []*part
	agent   *nats.Conn
}

// part is the orchestrator or a worker, on a connection of its own.
type part struct {
	nc     *nats.Conn
	cancel context.CancelFunc
	done   chan error
}

// Start runs a World until Stop and returns when plans can be submitted.
func Start(ctx context.Context, o Options) (*World, error) {
	if o.Workers == 0 {
		o.Workers = 2
	}
	w := &World{options: o, Meter: newMeter()}
	err := w.start(ctx)
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) (err error) {
	if w.server, err = embedded.Start(embedded.Options{}); err != nil {
		return err
	}
	if err := w.orchestrator(ctx); err != nil {
		return err
	}
	for i := range w.options.Workers {
		if err := w.worker(ctx, fmt.Sprintf("worker-%d", i+1)); err != nil {
			return err
		}
	}
	if w.agent, err = w.Connect(ctx); err != nil {
		return err
	}
	w.Client, err = client.New(ctx, w.agent, client.Config{Logger: w.options.Logger})
	return err
}

func (w *World) orchestrator(ctx context.Context) error {
	nc, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	o, err := orchestrator.New(nc, orchestrator.Config{Name: "orchestrator", Logger: w.options.Logger})
	if err != nil {
		nc.Close()
		return err
	}
	return w.begin(ctx, nc, o.Run, o.Ready())
}

func (w *World) worker(ctx context.Context, name string) error {
	nc, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	k, err := worker.New(nc, worker.Config{Name: name, Logger: w.options.Logger})
	if err != nil {
		nc.Close()
		return err
	}
	k.Use(w.Meter.wrap)
	if w.options.Around != nil {
		k.Use(w.options.Around)
	}
	w.options.Host(k)
	return w.begin(ctx, nc, k.Run, k.Ready())
}

// begin starts a part and waits until it is ready.
func (w *World) begin(ctx context.Context, nc *nats.Conn, run func(context.Context) error, ready <-chan struct{}) error {
	life, cancel := context.WithCancel(context.Background())
	p := &part{nc: nc, cancel: cancel, done: make(chan error, 1)}
	w.parts = append(w.parts, p)
	go func() { p.done <- run(life) }()
	select {
	case <-ready:
		return nil
	case err := <-p.done:
		p.done <- nil // for Stop
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Connect opens one more connection to the server; the caller closes it.
func (w *World) Connect(ctx context.Context) (*nats.Conn, error) {
	return kv.Connect(ctx, kv.ConnectOptions{InProcess: w.server.InProcess()})
}

// Stop ends the client, the workers, which finish what they have begun, the orchestrator, and the server.
func (w *World) Stop() error {
	if w.Client != nil {
		w.Client.Close()
	}
	if w.agent != nil {
		w.agent.Close()
	}
	var errs []error
	for _, p := range slices.Backward(w.parts) {
		p.cancel()
		errs = append(errs, <-p.done)
		p.nc.Close()
	}
	if w.server != nil {
		w.server.Shutdown()
	}
	return errors.Join(errs...)
}
