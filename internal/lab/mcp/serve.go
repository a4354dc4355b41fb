package mcp

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/worker"
)

// Serve runs a whole Stepjet with the tools of the suite and a server in front of it, on a loopback address, and calls
// do with the server's URL.
func Serve(ctx context.Context, do func(url string) error) error { return serveWith(ctx, Host, do) }

// serveWith is Serve with the tools that host registers.
func serveWith(ctx context.Context, host func(*worker.Worker) error, do func(url string) error) error {
	return whole(ctx, "mcp", host, func(c *client.Client) error { return inFront(ctx, c, do) })
}

// whole runs a whole Stepjet with the tools that host registers, and calls do with a client of it, whose connection has the
// name.
func whole(ctx context.Context, name string, host func(*worker.Worker) error, do func(*client.Client) error) error {
	stack, err := dev.Start(ctx, dev.Options{NoWorker: true})
	if err != nil {
		return err
	}
	defer stack.Stop()
	nc, err := stack.Connect(ctx, name)
	if err != nil {
		return err
	}
	defer nc.Close()
	stop, err := serve(ctx, nc, host)
	if err != nil {
		return err
	}
	defer stop()
	c, err := client.New(ctx, nc, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// inFront runs a server in front of a Stepjet and calls do with the server's URL.
func inFront(ctx context.Context, c *client.Client, do func(url string) error) error {
	all, err := selector.Parse("*")
	if err != nil {
		return err
	}
	s, err := server.New(server.Config{
		Client: func(context.Context, string) (*client.Client, error) { return c, nil },
		Expose: &all, TaskAfter: 300 * time.Millisecond, Hold: 5 * time.Second,
		Logger: warnings(),
	})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := s.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- s.ServeHTTP(serving, l) }()
	err = do("http://" + l.Addr().String() + server.Path)
	end()
	if e := <-served; err == nil {
		err = e
	}
	return err
}

// warnings writes what is wrong to standard error.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// serve runs a worker with tools until it is stopped, and returns once they are registered.
func serve(ctx context.Context, nc *nats.Conn, host func(*worker.Worker) error) (stop func(), err error) {
	w, err := worker.New(nc, worker.Config{DrainTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	if err := host(w); err != nil {
		return nil, err
	}
	running, end := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.Run(running) }()
	select {
	case <-w.Ready():
		return func() {
			end()
			<-over
		}, nil
	case err := <-over:
		end()
		return nil, err
	}
}
