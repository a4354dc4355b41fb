package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	// A run's owner answers within milliseconds, and nobody does while the partition changes hands; so the first
	// request waits shortly. A large document takes longer, so the later ones wait longer.
	answerFirst = 500 * time.Millisecond
	answerMost  = 4 * time.Second
	ownerWithin = 8 * time.Second        // all requests: longer than a dead owner's partitions stay without one
	ownerPause  = 100 * time.Millisecond // between requests that nobody takes
)

// request asks the control API. An owner that died is replaced within seconds, so a request that nobody takes is sent
// again until within has passed; all verbs may be repeated. Errors: what the owner answered, NotReady where nobody
// does.
func (c *Client) request(ctx context.Context, subject string, body []byte, within time.Duration) ([]byte, error) {
	until := time.Now().Add(within)
	for patience := answerFirst; ; patience = min(2*patience, answerMost) {
		m, err := c.requestOnce(ctx, subject, body, patience)
		if err == nil {
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !unanswered(err) {
			return nil, kv.Fault(err)
		}
		if time.Now().After(until) {
			return nil, nobody(c.nc, subject, err)
		}
		if !backoff.Pause(ctx, ownerPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// ofOwner asks the owner of a run. One that has not yet read a plan which was stored a moment ago knows nothing of its
// run, and is asked again. generation says which run of the id is meant, 0 for whichever has it. Errors: NotFound where the run is over or there is none, and those of request.
func (c *Client) ofOwner(ctx context.Context, name subjects.Run, generation uint64, verb string, body []byte, within time.Duration) ([]byte, error) {
	until := time.Now().Add(within)
	body = wire.For(generation, body)
	for {
		answer, err := c.request(ctx, subjects.API(name, verb), body, within)
		if fault.CodeOf(err) != fault.NotFound || time.Now().After(until) || !unread(ctx, c, name) {
			return answer, err
		}
		if !backoff.Pause(ctx, ownerPause) {
			return nil, context.Cause(ctx)
		}
	}
}

// unread reports whether a run's plan is stored and the history has nothing of it.
func unread(ctx context.Context, c *Client, name subjects.Run) bool {
	plan, err := c.store.Ledger.Read(ctx, subjects.PlanRecord(name, c.store.Ledger.Shards()))
	if err != nil {
		return false
	}
	head, err := c.store.Archive.HistoryHead(ctx, name)
	return fault.CodeOf(err) == fault.NotFound || err == nil && head.Generation < plan.Seq
}

func (c *Client) requestOnce(ctx context.Context, subject string, body []byte, patience time.Duration) ([]byte, error) {
	one, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := c.store.Requests.Request(one, subject, body)
	if err != nil {
		return nil, err
	}
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		return nil, markRefusal(err)
	}
	return m.Data, nil
}

// errLeftAlone is the cause of what an orchestrator says that is older than the run: another may know more. What this program
// can't read itself has another.
var errLeftAlone = errors.New("an orchestrator leaves the run alone")

func markRefusal(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.NewerVersion {
		f.Cause = errLeftAlone
	}
	return err
}

// unanswered tells a request that nobody took, or answered in time, from all else.
func unanswered(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

func nobody(nc *nats.Conn, subject string, err error) error {
	if !nc.IsConnected() {
		f := fault.New(fault.NoConnection, "the connection to %s is lost", serverOf(nc)).
			WithHint("see whether the server runs and can be reached; the client connects again by itself")
		f.Cause = err
		return f
	}
	f := fault.New(fault.NotReady, "no orchestrator answers on %s", subject)
	if errors.Is(err, nats.ErrNoResponders) {
		f = f.WithHint("start one: stepjet dev, or stepjet orchestrator --url …; the client may also lack the right to publish there")
	} else { // somebody listens there, or the server would say so
		f.Message += " in time"
		f = f.WithHint("ask again in a moment: the one that listens there is busy or stands still, or what was asked for is large; the client may also lack the right to publish there")
	}
	f.Cause = err
	return f
}

// serverOf names the servers that a connection is made to, without credentials.
func serverOf(nc *nats.Conn) string {
	var all []string
	for _, s := range append([]string{nc.Opts.Url}, nc.Opts.Servers...) {
		if u, err := url.Parse(s); err == nil && s != "" {
			u.User = nil
			all = append(all, u.String())
		}
	}
	if len(all) == 0 {
		return "the server in this process"
	}
	return strings.Join(all, ", ")
}

// Stopped is the stop that stands for a run.
type Stopped struct {
	// Status is what it ends the run with: outcome.Cancelled, or outcome.Expired where its deadline was first.
	Status outcome.RunStatus
	// By names who cancelled it, as they named themselves.
	By string
	// Already says that it stood before this request. It is false for the one that counts.
	Already bool
}

// Cancel asks the owner of a run to stop it: nothing new starts and what runs is told to end. by names who wants it,
// for the record. It returns once the stop stands; wait for the outcome to see what had succeeded before. Of several that
// cancel a run one counts, and all others are told that it stood Already, and whose that was. Errors:
// NotFound, AlreadyFinished for a run that was over before, InvalidID, NotReady where no orchestrator answers.
func (c *Client) Cancel(ctx context.Context, run, by string) (*Stopped, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	return cancelRun(ctx, c, name, run, 0, by)
}

// Cancel is Client.Cancel of this run, and of no other that was submitted under its id since: that this one is over is
// AlreadyFinished. Of a run that was attached to by its id alone, which is not known.
func (r *Run) Cancel(ctx context.Context, by string) (*Stopped, error) {
	return cancelRun(ctx, r.c, r.p.run, r.id, r.Generation(), by)
}

func cancelRun(ctx context.Context, c *Client, name subjects.Run, run string, generation uint64, by string) (*Stopped, error) {
	answer, err := c.ofOwner(ctx, name, generation, subjects.VerbCancel, wire.Cancel{By: by}.Body(), ownerWithin)
	if err == nil {
		var reply wire.Cancelled
		if err := json.Unmarshal(answer, &reply); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
		}
		return &Stopped{Status: reply.Status, By: reply.By, Already: reply.Already}, nil
	}
	if fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	// The owner forgets a run once it is over; the history doesn't.
	if head, herr := c.store.Archive.HistoryHead(ctx, name); herr == nil {
		return nil, fault.New(fault.AlreadyFinished, "run %q had ended before: %s", run, head.Status)
	}
	return nil, notFound(name)
}

// Amend changes the plan of a run that goes on. It returns once the amendment is in force, or, where the plan was submitted
// for an approval, once a person is asked about the amendment too; asking twice is asking once. An amendment has at most
// 256 KiB, a run at most 1,000 of them beside those that only close a plan.
//
// Errors: Conflict where the plan was amended meanwhile, whose details have the "revision" of now, and where somebody is
// asked about it or about another amendment; Rejected where a person refused it, or nobody approved of it in time;
// Overtaken where the run went on before the amendment stood, or was approved of, so that it does nothing; NotAmendable
// for a plan that stays as it was submitted; those of plans, with all of them in the details as "problems"; Permission
// for a step that people approve; AlreadyFinished, NotFound, LimitExceeded, TooLarge, InvalidValue; NotReady where no orchestrator answers.
func (c *Client) Amend(ctx context.Context, run string, a Amendment) (*Amended, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	request := wire.AmendRequest{
		Scope: a.Scope, Revision: a.Revision, Plan: a.Plan, Approves: a.Approves, Reason: a.Reason, By: a.By,
		Change: wire.Change{
			Add: a.Add, Discard: wire.Discard{Steps: a.Discard, Rest: a.Rest}, Output: a.Output, OutputSteps: a.OutputSteps, Close: a.Close, KeepOpen: a.KeepOpen,
		},
	}
	body, err := request.Body()
	if err != nil {
		return nil, err
	}
	if len(body) > wire.MaxAmendment {
		return nil, fault.New(fault.TooLarge, "the amendment has %d bytes, at most %d are allowed", len(body), wire.MaxAmendment).
			WithHint("amend in several parts, or hand large data on by a name or an address")
	}
	verb := subjects.VerbAmend
	if a.Approved {
		verb = subjects.VerbAmendApproved
	}
	answer, err := c.ofOwner(ctx, name, a.Generation, verb, body, ownerWithin)
	if err != nil {
		return nil, err
	}
	var reply wire.AmendReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return &Amended{Revision: reply.Revision, Steps: reply.Steps, Already: reply.Already, Waits: reply.Waits, Warnings: reply.Warnings}, nil
}
