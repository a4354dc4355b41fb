package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Run is a run that was submitted or attached to. It may be used from many goroutines.
type Run struct {
	c        *Client
	p        *pending
	id       string
	attached bool
}

// ID returns the run id as its submitter wrote it.
func (r *Run) ID() string { return r.id }

// Generation returns the sequence in the acknowledgement of the plan, where it is known: 0 for a run that was attached
// to by its id alone. An outcome with a lower one, whose status is rejected, is of an earlier plan.
func (r *Run) Generation() uint64 {
	r.c.waits.mu.Lock()
	defer r.c.waits.mu.Unlock()
	return r.p.generation
}

// Attached reports whether the run was there before: this client's submit did not start it.
func (r *Run) Attached() bool { return r.attached }

// Wait returns the outcome of the run when it is over. The outcome may be shared: don't change it. Errors: ctx's own,
// NotFound where a run that was attached to does not exist or the history has not kept a large outcome, Conflict where
// the id turned out to be another plan's, Permission where the history may not be read, NoConnection after Close. The
// run goes on when Wait gives up.
func (r *Run) Wait(ctx context.Context) (*outcome.Outcome, error) {
	c, p := r.c, r.p
	if !isDone(p) {
		if r.attached {
			sub, err := c.listen(p)
			if err != nil {
				return nil, err
			}
			defer func() { _ = sub.Unsubscribe() }() // a closed connection has none left to end
		}
		c.waits.join(p, time.Now())
		defer c.waits.leave(p)
	}
	select {
	case <-p.done:
		return c.outcome(ctx, p)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	}
}

// listen subscribes to the end of a run that somebody else submitted, so that its outcome comes at once too.
func (c *Client) listen(p *pending) (*nats.Subscription, error) {
	sub, err := c.nc.Subscribe(subjects.Event(p.run, subjects.EventEnd), func(m *nats.Msg) {
		if wire.KindEvent.Known(m.Header) { // else the history tells
			c.waits.resolve(p.run.ID, m.Data)
		}
	})
	if err != nil {
		return nil, kv.Fault(err)
	}
	return sub, nil
}

// outcome reads what a finished entry holds. An announcement without results is the short form of a large outcome; the
// whole of it lies in the history.
func (c *Client) outcome(ctx context.Context, p *pending) (*outcome.Outcome, error) {
	if p.err != nil {
		return nil, p.err
	}
	if p.out != nil {
		return p.out, nil
	}
	if out, ok := parseOutcome(p.raw); ok {
		return out, nil
	}
	// The run is over, and it is not lost for a server that is slow or away: only ctx ends the wait. Nor is it lost where
	// it is not found at once: any replica of the history may answer, and one that lags behind has not all that was
	// acknowledged.
	latest := time.Now().Add(lagsAtMost)
	for wait := backoff.Between(100*time.Millisecond, 2*time.Second); ; {
		run, err := c.store.Archive.History(ctx, p.run)
		switch code := fault.CodeOf(err); {
		case err == nil:
			return outcomeOf(run)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case c.ctx.Err() != nil:
			return nil, context.Cause(c.ctx)
		case code == fault.NotFound && time.Now().Before(latest):
		case code != fault.Timeout && code != fault.NoConnection && code != fault.NotReady || c.nc.IsClosed():
			return nil, err
		}
		c.log.Warn("the outcome of a run that is over can't be read; it is tried again", "tenant", p.run.Tenant, "run", p.run.Plain())
		if !backoff.Pause(ctx, wait.Next()) {
			return nil, context.Cause(ctx)
		}
	}
}

// lagsAtMost is how long a replica may take until it has what was acknowledged, one that restarts included.
const lagsAtMost = 10 * time.Second

// parseOutcome reads an announced outcome; ok is false for its short form and for what is none at all.
func parseOutcome(raw []byte) (out *outcome.Outcome, ok bool) {
	out = &outcome.Outcome{}
	if out.UnmarshalJSON(raw) != nil || out.Results == nil && out.Output == nil {
		return nil, false
	}
	return out, true
}

func outcomeOf(run *outcome.Run) (*outcome.Outcome, error) {
	if run.Outcome == nil {
		return nil, fault.New(fault.Internal, "the history of run %s holds no outcome", run.Run)
	}
	return run.Outcome, nil
}

const (
	tick       = 50 * time.Millisecond // how exactly the pauses are kept
	readsEach  = 64                    // most reads in one tick, so that many waits at once don't drown the leader
	readsWide  = 16                    // reads side by side
	readAtMost = 5 * time.Second       // one read
)

// loop reads the history for those who wait. It is the only goroutine of a client.
func (c *Client) loop() {
	defer close(c.done)
	status := c.nc.StatusChanged(nats.CONNECTED)
	defer c.nc.RemoveStatusListener(status)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case _, open := <-status:
			if !open { // the connection was closed for good
				status = nil
				continue
			}
			c.waits.all()
		case <-t.C:
		case <-c.waits.kick:
		}
		c.reread(c.waits.due(time.Now(), readsEach))
	}
}

func (c *Client) reread(due []*pending) {
	var g errgroup.Group
	g.SetLimit(readsWide)
	for _, p := range due {
		g.Go(func() error {
			c.readOne(p)
			c.waits.again(p, time.Now())
			return nil
		})
	}
	_ = g.Wait() // no function returns an error
}

func (c *Client) readOne(p *pending) {
	ctx, cancel := context.WithTimeout(c.ctx, readAtMost)
	defer cancel()
	run, active, err := c.latest(ctx, p.run)
	if fault.CodeOf(err) == fault.NotFound && p.foreign.Load() {
		err = c.exists(ctx, p.run)
	}
	switch code := fault.CodeOf(err); {
	case active > 0:
		c.waits.raise(p, active)
	case err == nil && run != nil && c.waits.earlier(p, run):
	case err == nil && run != nil:
		c.waits.finish(p, func() {
			if run.Status == outcome.Rejected {
				p.rejection = run.Generation
			}
			if p.out, p.err = outcomeOf(run); p.err == nil && p.digest != "" {
				p.err = compare(p.run, run.Digest, p.digest)
			}
		})
	case err == nil: // it is on its way
	case code == fault.Permission, code == fault.NewerVersion, code == fault.NotFound && p.foreign.Load():
		c.waits.finish(p, func() { p.err = err })
	case code != fault.NotFound && !errors.Is(err, context.Canceled):
		c.log.Warn("the history can't be read; it is tried again", "tenant", p.run.Tenant, "run", p.run.Plain(), "error", err)
	}
}

// exists tells a run that goes on from one that is not there: NotFound. It reads the plan record, then the history once
// more, because a run may end between two reads.
func (c *Client) exists(ctx context.Context, run subjects.Run) error {
	_, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(run, c.store.Ledger.Shards()))
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	if _, err = c.store.Archive.HistoryHead(ctx, run); fault.CodeOf(err) == fault.NotFound {
		return notFound(run)
	}
	return err
}

func notFound(run subjects.Run) error {
	return fault.New(fault.NotFound, "no run %q of tenant %s", run.Plain(), run.Tenant).
		WithHint("it was never submitted, or it is no longer kept")
}

// Attach returns a handle on a run that was submitted elsewhere, to wait for it. It does not look whether there is such
// a run; Wait does. Errors: InvalidID.
func (c *Client) Attach(run string) (*Run, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	return c.attach(name, run, "", 0), nil
}

// attach enters a run; digest is that of the plan that was submitted for it, or empty, generation the sequence of its
// record, or 0.
func (c *Client) attach(name subjects.Run, id, digest string, generation uint64) *Run {
	p := c.waits.planned(c.waits.enter(name), digest, generation)
	p.foreign.Store(true)
	return &Run{c: c, p: p, id: id, attached: true}
}
