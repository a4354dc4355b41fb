package client

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// SubmitOptions say how a plan is submitted. The zero value gives it a run id of its own.
type SubmitOptions struct {
	// Run is the run id, the idempotency key: 1 to 128 bytes of any kind. Empty: a new one, a UUID of version 7.
	Run string
	// Header travels with the plan: traceparent, tracestate. Headers of NATS and of Stepjet (Nats-…, Stepjet-…) in it
	// are left out, and a trace context that is not valid.
	Header nats.Header
	// Context is out-of-band context for the run's tools: who is asking, a correlation id, a credential. It travels in
	// headers alone and is no part of what makes two plans the same: a submit that attaches to a run changes nothing of
	// the context which that run was given. At most 8 KiB of keys and values. Secrets are sealed to the key of
	// SealingKey, where there is one: only workers and orchestrators can read them then.
	Context RunContext

	// Permissions are what the run may use: it is rejected where a tool that it calls is in a group which needs another
	// one. nil: everything; empty: nothing that needs any. As with Context, a submit that attaches changes nothing.
	Permissions []string

	retry wire.Retry // what the plan tries again
}

// Submit makes a plan durable and returns a handle on its run. It returns once the ledger holds the plan, and tries
// again until ctx ends where the answer is unknown or the ledger is full, always under the same run id.
//
// Submitting the same bytes under the same id again attaches to the run that is there, finished or not. An id whose run
// was rejected is free for any plan; the same bytes get the same rejection again for 10 s. Errors: Conflict where the
// id was used for other bytes, InvalidID, LimitExceeded for too much context, MessageTooLarge, StoreFull, Permission,
// NoConnection, and ctx's own error, after which the plan may or may not have been accepted.
func (c *Client) Submit(ctx context.Context, body []byte, o SubmitOptions) (r *Run, err error) {
	began := c.tell.began()
	defer func() { c.tell.submit(c.tenant, len(body), &o, began, r, err) }()
	id, chosen := o.Run, o.Run != ""
	if !chosen {
		fresh, err := uuid.NewV7() // dated, which spares the orchestrator a look into the history
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "making a run id")
		}
		id = fresh.String()
	}
	name, err := c.name(id)
	if err != nil {
		return nil, err
	}
	if o.Context, err = c.sealed(ctx, name, o.Context); err != nil {
		return nil, err
	}
	h, err := headerOf(c.token, o)
	if err != nil {
		return nil, err
	}
	if err := fits(c.store.MaxPayload(), body, h); err != nil {
		return nil, err
	}
	digest := plan.Digest(body)
	if chosen {
		// The record of a run that is over is gone after a while, and a create would succeed. Its history decides.
		switch err := c.sameAsHistory(ctx, name, digest); {
		case err == nil:
			return c.attach(name, id, digest, 0), nil
		case fault.CodeOf(err) == fault.Permission: // who may only submit does; the orchestrator looks as well
		case fault.CodeOf(err) != fault.NotFound:
			return nil, err
		}
	}
	return c.create(ctx, name, id, body, digest, h)
}

// Run submits a plan and waits for its outcome.
func (c *Client) Run(ctx context.Context, plan []byte, o SubmitOptions) (*outcome.Outcome, error) {
	r, err := c.Submit(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// create writes the plan record, or finds out whose is there.
func (c *Client) create(ctx context.Context, name subjects.Run, id string, plan []byte, digest string, h nats.Header) (*Run, error) {
	p := c.waits.enter(name) // before the plan is sent: its end may come at once
	for {
		decision, seq, err := c.store.Ledger.Create(ctx, c.store.Ledger.SubmitSubject(name), clone(h), bytes.Clone(plan), nil)
		if err != nil {
			return nil, err
		}
		if decision == kv.Written {
			return &Run{c: c, p: c.waits.planned(p, digest, seq), id: id}, nil
		}
		generation, err := c.same(ctx, name, digest)
		switch {
		case err == nil:
			return c.attach(name, id, digest, generation), nil
		case fault.CodeOf(err) != fault.NotFound:
			return nil, err
		}
		// The record was there and is gone or about to go: its run was rejected, or purged by hand. Try again.
		if !backoff.Pause(ctx, leavingPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// leavingPause is between two tries to submit a plan while a rejected one of its id is being removed.
const leavingPause = 10 * time.Millisecond

// same compares a digest with the run that is there: nil for the same plan, with the sequence of its record where that
// stands; Conflict for another, NotFound for none or one that leaves its id free.
func (c *Client) same(ctx context.Context, name subjects.Run, digest string) (generation uint64, err error) {
	record, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(name, c.store.Ledger.Shards()))
	if err == nil {
		err = compare(name, plan.Digest(record.Data), digest)
		if err != nil && c.leaving(ctx, name, record.Seq) {
			err = notFound(name)
		}
		return record.Seq, err
	}
	if fault.CodeOf(err) != fault.NotFound {
		return 0, err
	}
	return 0, c.sameAsHistory(ctx, name, digest)
}

func (c *Client) sameAsHistory(ctx context.Context, name subjects.Run, digest string) error {
	head, err := c.store.Archive.HistoryHead(ctx, name)
	if err != nil {
		return err
	}
	if head.Status == outcome.Rejected {
		return notFound(name) // its id is free; whether the same bytes are judged anew is the orchestrator's to say
	}
	return compare(name, head.Digest, digest)
}

func compare(name subjects.Run, there, digest string) error {
	if there == digest {
		return nil
	}
	return fault.New(fault.Conflict, "the run id %q was used for a different plan", name.Plain()).
		WithHint("choose another run id; the same plan means the same bytes (sha256 %.12s… there, %.12s… here)", there, digest)
}

// headerOf returns the headers of a plan: the caller's own ones without any that NATS or Stepjet would act upon, the
// out-of-band context, and the token that names this client. A message id is never sent: the server would take a second
// plan for a repetition and answer success without storing it.
func headerOf(token string, o SubmitOptions) (nats.Header, error) {
	h := nats.Header{}
	for k, v := range o.Header {
		lower := strings.ToLower(k)
		if !strings.HasPrefix(lower, "nats-") && !strings.HasPrefix(lower, "stepjet-") {
			h[k] = v
		}
	}
	wire.Plan{
		Client: token, Retry: o.retry, Context: o.Context, Trace: wire.TraceOf(h), Permissions: o.Permissions,
	}.Set(h)
	// What the orchestrator would refuse is refused here, where nothing has been sent yet.
	_, err := wire.ParsePlan(h)
	return h, err
}

func clone(h nats.Header) nats.Header {
	c := make(nats.Header, len(h)+2)
	for k, v := range h {
		c[k] = v
	}
	return c
}

// headerRoom is what the store may add to a plan's headers, in bytes.
const headerRoom = 512

// fits refuses a plan that a server with this limit of payloads would refuse by closing the connection.
func fits(limit int64, plan []byte, h nats.Header) error {
	headers := int64(headerRoom)
	for k, v := range h {
		for _, s := range v {
			headers += int64(len(k) + len(s) + 4)
		}
	}
	if int64(len(plan))+headers <= limit {
		return nil
	}
	return fault.New(fault.MessageTooLarge, "the plan has %d bytes and its headers %d, the server takes messages of %d", len(plan), headers, limit).
		WithHint("make the plan smaller, or raise max_payload in the server's configuration")
}
