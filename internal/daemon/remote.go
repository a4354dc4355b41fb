package daemon

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// Remote is a service that needs a NATS server. The daemon and its health endpoint run while it waits for one, so that
// nobody takes a program that waits for one that hangs.
type Remote struct {
	connect func(context.Context) (*nats.Conn, error)
	build   func(*nats.Conn) (Service, error)
	ready   chan struct{}
	nc      *nats.Conn // once ready is closed
}

// NewRemote makes a service of how to connect and what to do then.
func NewRemote(connect func(context.Context) (*nats.Conn, error), build func(*nats.Conn) (Service, error)) *Remote {
	return &Remote{connect: connect, build: build, ready: make(chan struct{})}
}

// Ready is closed once the service that was made is ready.
func (r *Remote) Ready() <-chan struct{} { return r.ready }

// Run connects, makes the service and runs it.
func (r *Remote) Run(ctx context.Context) error {
	nc, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	s, err := r.build(nc)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-s.Ready():
			r.nc = nc
			close(r.ready)
		case <-ended:
		}
	}()
	err = s.Run(ctx)
	close(ended)
	<-told
	return err
}

// Check says that a program without a server can't work. It is for a service that is ready.
func (r *Remote) Check() error {
	if r.nc.IsConnected() {
		return nil
	}
	return fault.New(fault.NoConnection, "not connected to NATS")
}
