package chaos

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/internal/lab/living"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// agentPatience is how long an agent waits for one outcome: longer than any scenario lasts.
const agentPatience = 10 * time.Minute

// insistAfter is how long an agent that insists waits before it submits a run again.
const insistAfter = 5 * time.Second

// agent submits runs and waits for them, some at a time, until it is told to end; then it waits for those it has.
func (r *Role) agent(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	a, err := r.newAgent(ctx, nc, log)
	if err != nil {
		return err
	}
	defer a.c.Close()
	ready()
	var all sync.WaitGroup
	for range max(r.Parallel, 1) {
		all.Go(func() { a.submitAll(ctx) })
	}
	all.Wait()
	return nil
}

// newAgent returns an agent once there is a Stepjet to submit to.
func (r *Role) newAgent(ctx context.Context, nc *nats.Conn, log *slog.Logger) (*agent, error) {
	events, err := journal.Open(r.Log, r.Name)
	if err != nil {
		return nil, err
	}
	var c *client.Client
	for c == nil {
		if c, err = client.New(ctx, nc, client.Config{Tenant: r.Tenant, Logger: log}); err != nil && ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(50 * time.Millisecond) // an orchestrator is still setting up
	}
	return &agent{role: r, c: c, events: events}, nil
}

type agent struct {
	role   *Role
	c      *client.Client
	events *journal.Log
	count  atomic.Int64
}

func (a *agent) submitAll(ctx context.Context) {
	for ctx.Err() == nil {
		n := int(a.count.Add(1)) - 1
		if a.role.Runs > 0 && n >= a.role.Runs {
			return
		}
		id := n
		if a.role.Reuse > 0 {
			id %= a.role.Reuse
		}
		kind := a.role.Kinds[id%len(a.role.Kinds)]
		a.one(fmt.Sprintf("%s-%s-%d", kind, a.role.Name, id), n)
	}
}

// one submits a run and waits for its outcome. Every eighth run is submitted again once it is over, and every sixteenth
// with another plan: the first must give the same outcome, the second must be refused.
func (a *agent) one(run string, n int) {
	w := WorkOf(run)
	r, err := a.submit(context.Background(), run, w.Plan)
	if err != nil {
		return
	}
	if w.Kind == kindCancel {
		go a.cancel(run)
	}
	for !a.wait(r) {
		if again, err := a.submit(context.Background(), run, w.Plan); err == nil {
			r = again
		}
	}
	if a.role.Reuse > 0 {
		time.Sleep(200 * time.Millisecond) // most of the time the run that is asked for is the last one
	}
	if n%8 == 0 {
		if again, err := a.submit(context.Background(), run, w.Plan); err == nil {
			a.wait(again)
		}
	}
	if n%16 == 1 && a.role.Reuse == 0 {
		_, _ = a.submit(context.Background(), run, []byte(`{"steps":[{"id":"other","tool":"try1_all"}]}`))
	}
}

// lives plays a client of living runs.
func (r *Role) lives(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	past, err := journal.Read(r.Log)
	if err != nil {
		return err
	}
	a, err := r.newAgent(ctx, nc, log)
	if err != nil {
		return err
	}
	defer a.c.Close()
	ready()
	l := &living.Client{
		Client: a.c, Number: r.Client, Lanes: r.Parallel, Runs: r.Runs, Events: a.events, Past: past, Submit: a.submit,
		Of: func(run string) *living.Plan { return WorkOf(run).living }, Wait: func(r *client.Run) { a.wait(r) },
	}
	l.Run(ctx)
	return nil
}

// submit logs what it is about to send, and what came of it.
func (a *agent) submit(ctx context.Context, run string, body []byte) (*client.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	e := journal.Event{Kind: journal.Submit, Run: run, Tenant: a.c.Tenant(), Digest: plan.Digest(body)}
	a.events.Add(e)
	secret, err := wire.NewContext(map[string]string{secretKey: secretOf(a.c.Tenant(), run)}, secretKey)
	must(err)
	r, err := a.c.Submit(ctx, body, client.SubmitOptions{Run: run, Context: wire.RunContext{All: secret}})
	if err != nil {
		e.Kind, e.Code = journal.Refuse, string(fault.CodeOf(err))
		a.events.Add(e)
		return nil, err
	}
	e.Kind, e.Generation = journal.Accept, r.Generation()
	a.events.Add(e)
	return r, nil
}

// wait logs the outcome. It reports false where an agent that insists has to submit once more.
func (a *agent) wait(r *client.Run) (done bool) {
	patience := agentPatience
	if a.role.Insist {
		patience = insistAfter
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	o, err := r.Wait(ctx)
	switch {
	case err != nil && a.role.Insist:
		return false
	case err != nil:
		a.events.Add(journal.Event{Kind: journal.Outcome, Run: r.ID(), Tenant: a.c.Tenant(), Code: string(fault.CodeOf(err))})
	default:
		a.events.Add(journal.Event{
			Kind: journal.Outcome, Run: r.ID(), Tenant: a.c.Tenant(), Generation: o.Generation, Status: string(o.Status),
			Digest: digest(o.JSON()),
		})
	}
	return true
}

// cancel asks for a cancel at a moment that follows from the run's id.
func (a *agent) cancel(run string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run))
	time.Sleep(time.Duration(h.Sum32()%120) * time.Millisecond)
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	code := ""
	if _, err := a.c.Cancel(ctx, run, a.role.Name); err != nil {
		code = string(fault.CodeOf(err))
	}
	a.events.Add(journal.Event{Kind: journal.Cancel, Run: run, Tenant: a.c.Tenant(), Code: code})
}
