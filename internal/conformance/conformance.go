// Package conformance drives a worker, in whatever language, through the protocol of docs/protocol.md and says what it
// got wrong. It plays the orchestrator: it answers the registration, sends steps of every kind, good and bad, and
// listens beside the worker to what it says to JetStream.
//
// Safety: it refuses to work on a server that has an orchestrator, so it can't mix with real runs; what it wrote there
// it removes. Liveness: every wait is bounded, so a worker that does nothing is reported and not waited for. Failure:
// one check that fails doesn't keep the others from running, unless the worker takes no steps at all.
package conformance

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// DefaultTool is the name of the tool that a worker under test hosts.
const DefaultTool = "conformance"

// Options say what to drive and how patiently.
type Options struct {
	// Conn is a connection to a server with JetStream and without an orchestrator.
	Conn *nats.Conn
	// Host starts and stops the worker; nil where it is running already: what needs a restart is left out then.
	Host Host
	// Tool is the tool that the worker hosts; empty: DefaultTool.
	Tool string
	// Lease is the lease of the steps; 0: 2 s. A tool that is registered on the server already keeps the one it has.
	Lease time.Duration
	// Patience is how long the worker may take for what it should do at once, starting included; 0: 15 s.
	Patience time.Duration
	// Only are the names of checks to be made; empty: all. The first is always made.
	Only []string
	// Each, if it isn't nil, is called with every check as soon as it is over.
	Each func(Check)
	// Logger takes what goes on inside; nil: nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Tool == "" {
		o.Tool = DefaultTool
	}
	if o.Lease == 0 {
		o.Lease = 2 * time.Second
	}
	if o.Patience == 0 {
		o.Patience = 15 * time.Second
	}
	if o.Each == nil {
		o.Each = func(Check) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error {
	if !subjects.ValidTool(o.Tool) {
		return fault.New(fault.InvalidConfig, "%q is no tool name", o.Tool).
			WithHint("1 to %d of A-Z a-z 0-9 _ . : / -", subjects.MaxToolName)
	}
	if o.Lease < time.Second {
		return fault.New(fault.InvalidConfig,
			"a lease of %v: at least 1s, or nobody can tell a late heartbeat from a missing one", o.Lease)
	}
	names := Names()
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			return fault.New(fault.InvalidConfig, "there is no check %q", name).
				WithHint("the checks are: %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// Run makes the checks, one after the other, and reports. An error means that they could not be made: InvalidConfig
// where the options can't be used or the server has an orchestrator, those of kv.Setup, and that of a worker which
// can't be started at all.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	r := &Report{Tool: o.Tool, Conforms: true}
	for i := range checks {
		c := s.make(ctx, &checks[i])
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case s.broken != nil:
			return nil, s.broken
		}
		if c.Status == Failed {
			r.Conforms = false
		}
		r.Checks = append(r.Checks, c)
		o.Each(c)
	}
	r.Worker = s.worker
	return r, nil
}
