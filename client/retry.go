package client

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// RetryOptions say how a run is tried again. The zero value executes again what did not succeed.
type RetryOptions struct {
	// Run is the id of the new run. Empty: "<run>.2", and after a retry "….2" the next number, "….3"; with From that of
	// the step behind it, "<run>.2.from-<step>". The id follows from that of the run and From alone, so that asking
	// twice makes one run; to try again what a retry did not bring about, retry that.
	Run string
	// From names a step that is executed again, with all that depends on it, though it succeeded.
	From string
	// Context is the out-of-band context of the new run. The values of the old one are not kept anywhere, its keys are:
	// Retry refuses to leave one out.
	Context RunContext
	// LessContext allows keys to be left out that the old run had.
	LessContext bool
	// Header travels with the plan, as with SubmitOptions.
	Header nats.Header
	// Permissions are what the new run may use; nil: what the old one may.
	Permissions []string
}

// Retry runs a finished run again, as a new run of the same plan: it takes over every result that there is and executes
// what failed, was skipped or was cancelled. Of a for_each step the items count one by one: those that succeeded are
// taken over if its list has the same bytes again, and what depends on a step with failed entries is executed again.
// In a plan with conditions so is all that depends on what did not succeed: a step may have been taken because of a
// failure. What was not taken is decided anew.
// What is executed has a new idempotency key; its worker is told the one it had as well. Asking again for the same
// retry attaches to it. Errors: NotFound, also for a step that the plan hasn't got; NotReady for a run that is not
// over; AlreadyFinished where there is nothing to execute again, or nothing ever ran; Conflict where the new id was
// used for something else; InvalidConfig for context that is missing, which Missing tells; and those of Submit.
func (c *Client) Retry(ctx context.Context, run string, o RetryOptions) (*Run, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(run) != run || strings.ContainsAny(run, "\r\n") {
		return nil, fault.New(fault.InvalidID, "the run id %q has blanks at its ends or line breaks, which no header carries", run).
			WithHint("submit the plan again under another id")
	}
	doc, err := c.finished(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := retryable(doc, o.From); err != nil {
		return nil, err
	}
	if err := sameKeys(doc.Context, o.Context, o.LessContext); err != nil {
		return nil, err
	}
	if o.Run == "" {
		o.Run = nextRun(doc, o.From)
	}
	if len(o.Run) > subjects.MaxRunID {
		return nil, fault.New(fault.InvalidID, "the id %q of the new run has %d bytes", o.Run, len(o.Run)).
			WithHint("choose one of at most %d bytes", subjects.MaxRunID)
	}
	if o.Permissions == nil {
		o.Permissions = doc.Permissions
	}
	of := wire.Retry{Of: run, From: o.From}
	r, err := c.Submit(ctx, doc.Plan, SubmitOptions{
		Run: o.Run, Header: o.Header, Context: o.Context, Permissions: o.Permissions, retry: of,
	})
	if err != nil || !r.Attached() {
		return r, err
	}
	return r, c.sameRetry(ctx, r, of)
}

// finished returns the document of a run that is over, with its plan as it was submitted.
func (c *Client) finished(ctx context.Context, name subjects.Run) (*outcome.Run, error) {
	doc, active, err := c.latest(ctx, name)
	if active > 0 || fault.CodeOf(err) == fault.NotFound {
		if err := c.exists(ctx, name); err != nil {
			return nil, err
		}
		return nil, fault.New(fault.NotReady, "run %q is not over yet", name.Plain()).
			WithHint("wait for it, or cancel it; what fails in it is retried by itself as often as its tools allow")
	}
	if err != nil {
		return nil, err
	}
	return doc, nil // its plan has lost the white space around it, which makes another digest, and no difference
}

// retryable says why there is nothing to execute again.
func retryable(doc *outcome.Run, from string) error {
	if doc.Status == outcome.Rejected {
		return fault.New(fault.AlreadyFinished, "run %q was rejected: nothing of it ever ran", doc.Run).
			WithHint("mend the plan and submit it again; its run id is free")
	}
	open := false
	for i := range doc.Steps {
		if doc.Steps[i].ID == from {
			return nil
		}
		open = open || doc.Steps[i].Status.Unsuccessful() || doc.Steps[i].FailedWithin()
	}
	switch {
	case from != "":
		return fault.New(fault.NotFound, "run %q has no step %q", doc.Run, from)
	case !open:
		return fault.New(fault.AlreadyFinished, "no step of run %q failed: there is nothing to try again", doc.Run).
			WithHint("name a step to execute it and all that depends on it again: --from STEP")
	}
	return nil
}

// nextRun returns the id of a run's retry. Only the number of a run that is a retry itself is counted on: that of any
// other is a part of its name. A retry from a step is another run than one without, so it has another id.
func nextRun(doc *outcome.Run, from string) string {
	next := doc.Run + ".2"
	if base, number, ok := cutLast(doc.Run, "."); ok && doc.RetryOf != "" {
		if n, err := strconv.Atoi(number); err == nil && n >= 2 && strconv.Itoa(n) == number {
			next = base + "." + strconv.Itoa(n+1)
		}
	}
	if from != "" {
		next += ".from-" + from
	}
	return next
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// sameRetry makes sure that a run of the same plan that was there before is the retry that was asked for.
func (c *Client) sameRetry(ctx context.Context, r *Run, of wire.Retry) error {
	there, err := c.retryOf(ctx, subjects.NewRun(c.tenant, r.id))
	if err != nil || there == of {
		return err
	}
	return fault.New(fault.Conflict, "the run id %q was used before, %s", r.id, purpose(there)).WithHint("choose another id for the retry")
}

// purpose says what a run is for.
func purpose(r wire.Retry) string {
	switch {
	case r.Of == "":
		return "for a run that is no retry"
	case r.From == "":
		return "to retry what failed of " + strconv.Quote(r.Of)
	}
	return "to retry " + strconv.Quote(r.Of) + " from step " + r.From
}

// retryOf reads what a run tries again: from its plan record, or from history where that is purged.
func (c *Client) retryOf(ctx context.Context, name subjects.Run) (wire.Retry, error) {
	record, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(name, c.store.Ledger.Shards()))
	if err == nil {
		there, _ := wire.ParsePlan(record.Header) // what is wrong with the rest is its run's matter
		return there.Retry, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return wire.Retry{}, err
	}
	head, err := c.store.Archive.HistoryHead(ctx, name)
	if err != nil {
		return wire.Retry{}, err
	}
	return wire.Retry{Of: head.RetryOf, From: head.RetryFrom}, nil
}
