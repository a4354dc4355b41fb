package dev

import (
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/hosted"
	"github.com/stepjet/stepjet/worker"
)

// host is a toolworker in this process, with the tools of a file or the built-in ones.
type host struct {
	*part
	tools *hosted.File
}

// connector opens a connection that is shown under a name.
type connector func(ctx context.Context, name string) (*nats.Conn, error)

// tools returns the tools to host, before anything is started for them. Errors: InvalidConfig for a file that can't be
// used.
func (o *Options) tools() (*hosted.File, error) {
	if o.Tools == "" {
		return hosted.Builtin(), nil
	}
	f, err := hosted.Load(o.Tools)
	if err != nil {
		return nil, err
	}
	for _, warning := range f.Warnings() {
		o.Logger.Warn(warning, "file", o.Tools)
	}
	return f, nil
}

// startHost returns when its tools are registered; it closes them where it fails. Errors are those of the worker.
func startHost(
	ctx context.Context, connect connector, o Options, tools *hosted.File, failed chan error,
) (*host, error) {
	h := &host{tools: tools}
	nc, err := connect(ctx, "toolworker")
	if err != nil {
		h.tools.Close()
		return nil, err
	}
	name := fmt.Sprintf("local-%d", os.Getpid()) // several processes may work on one folder
	w, err := worker.New(nc, worker.Config{Name: name, Slots: o.Slots, Logger: o.Logger, SecretsKey: o.SecretsKey})
	if err == nil {
		err = h.tools.Register(w)
	}
	if err == nil && o.More != nil {
		err = o.More(w)
	}
	if err != nil {
		nc.Close()
		h.tools.Close()
		return nil, err
	}
	h.part = runPart("toolworker", nc, w.Run, failed)
	if err := await(ctx, w.Ready(), failed); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// end stops the worker, which finishes what it has begun.
func (h *host) end() {
	if h == nil {
		return
	}
	h.part.end()
	h.tools.Close()
}
