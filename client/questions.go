package client

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Answer is what a person says to a question, besides yes, no or a value. The zero value says nothing more.
type Answer struct {
	// Arguments take the place of those that the question shows, when it is approved; nil leaves them. At most 256 KiB.
	Arguments json.RawMessage
	// Reason is for who reads what became of the run; at most 4 KiB of it are kept.
	Reason string
	// By names who answers. It is kept as unverified, unless the server says who asks, and then it is the server's word.
	By string
}

// Questions lists what runs of the tenant wait for people to say, or one run where its id is not empty, in the order in
// which it was asked; large arguments lie in blobs. Errors: InvalidID, and those of reading.
func (c *Client) Questions(ctx context.Context, run string) ([]*outcome.Question, error) {
	of := subjects.Run{Tenant: c.tenant}
	if run != "" {
		name, err := c.name(run)
		if err != nil {
			return nil, err
		}
		of = name
	}
	var all []*outcome.Question
	err := c.store.Archive.Questions(ctx, of, func(q *outcome.Question) { all = append(all, q) })
	return all, err
}

// Question returns what a step waits for a person to say, with its arguments; step is its token: "S", "S=i" for an item
// of a for_each, "=" for the plan as a whole. Errors: NotFound where it waits for nobody, InvalidID, and those of
// reading.
func (c *Client) Question(ctx context.Context, run, step string) (*outcome.Question, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	if !subjects.ValidStepToken(step) {
		return nil, fault.New(fault.InvalidID, "%q is no step", text.Clip(step, 80)).
			WithHint(`a step's id, "id=3" for an item of a for_each, or "=" for the plan`)
	}
	q, err := c.store.Archive.Question(ctx, name, 0, step)
	if err != nil || q.Blob == nil {
		return q, err
	}
	if q.Arguments, err = c.store.Archive.Blob(ctx, q.Blob); err != nil {
		return nil, err
	}
	return q, nil
}

// Approve lets what a question shows begin. The question says which: an answer to one that is not asked any more, or
// shows something else now, counts for nothing. It returns once the answer stands; asking twice is asking once, also
// once the run is over. A question without a digest is none that is open: to it nothing is answered, and what stands is
// returned where it says the same. Errors: Conflict where something else stands or is asked, InvalidArguments,
// InvalidValue, TooLarge, Permission, AlreadyFinished, NotFound, NotReady where no orchestrator answers.
func (c *Client) Approve(ctx context.Context, q *outcome.Question, a Answer) (*outcome.Answered, error) {
	return c.answer(ctx, q, wire.Answer{Decision: wire.Approve, Arguments: a.Arguments, Reason: a.Reason, By: a.By})
}

// Reject fails the step that asks, or cancels the run whose plan does; of an amendment, the plan goes on as it was. Errors as those of Approve.
func (c *Client) Reject(ctx context.Context, q *outcome.Question, a Answer) (*outcome.Answered, error) {
	return c.answer(ctx, q, wire.Answer{Decision: wire.Reject, Reason: a.Reason, By: a.By})
}

// Answer gives the step that asks its result: what it asked for, or, where it waits for an approval, the value that
// takes the place of what its tool would have returned. value is JSON, at most 256 KiB. Errors as those of Approve.
func (c *Client) Answer(
	ctx context.Context, q *outcome.Question, value json.RawMessage, a Answer,
) (*outcome.Answered, error) {
	if !json.Valid(value) {
		return nil, fault.New(fault.InvalidValue, "the answer is no JSON: %s", text.Clip(string(value), 80)).
			WithHint(`a text is written in quotes: "yes"`)
	}
	return c.answer(ctx, q, wire.Answer{Value: value, Reason: a.Reason, By: a.By})
}

func (c *Client) answer(ctx context.Context, q *outcome.Question, a wire.Answer) (*outcome.Answered, error) {
	name, err := c.name(q.Run)
	if err != nil {
		return nil, err
	}
	if a.Digest = q.Digest; a.Digest == "" {
		doc, err := c.get(ctx, name, ownerWithin)
		if err != nil {
			return nil, err
		}
		return stood(doc, q, a, func(h *outcome.Handle) ([]byte, error) { return c.Blob(ctx, h) })
	}
	body, err := wire.AnswerRequest{Step: q.Step, Answer: a}.Body()
	if err != nil {
		return nil, err
	}
	verb := subjects.VerbApprove
	if q.Kind == outcome.Ask {
		verb = subjects.VerbAnswer
	}
	answer, err := c.ofOwner(ctx, name, verb, body, ownerWithin)
	if code := fault.CodeOf(err); code == fault.AlreadyFinished || code == fault.NotFound {
		doc, _, bad := c.latest(ctx, name)
		if bad != nil || doc == nil || doc.Generation != q.Generation {
			return nil, err
		}
		return stood(doc, q, a, func(h *outcome.Handle) ([]byte, error) { return c.Blob(ctx, h) })
	}
	if err != nil {
		return nil, err
	}
	var reply wire.AnswerReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return &reply.Answered, nil
}

// stood returns the answer that a document tells of, where it says the same as another. Errors: Conflict where it says
// something else, NotFound where nobody answered, and those of blob, which reads a large result.
func stood(doc *outcome.Run, q *outcome.Question, a wire.Answer, blob func(*outcome.Handle) ([]byte, error)) (*outcome.Answered, error) {
	step := q.Step
	stands, result := answeredIn(doc, q)
	if stands == nil {
		return nil, fault.New(fault.NotFound, "the step %s of run %q waits for no answer", text.Clip(step, 80), doc.Run).
			WithHint("what waits: stepjet questions list; where the run stands: stepjet get %s", doc.Run)
	}
	if a.Value != nil && result != nil && result.Result == nil && result.Blob != nil {
		raw, err := blob(result.Blob)
		if err != nil {
			return nil, err
		}
		result.Result = raw
	}
	was := wire.Answer{Arguments: stands.Arguments}
	switch stands.Decision {
	case outcome.DecisionApproved:
		was.Decision = wire.Approve
	case outcome.DecisionRejected:
		was.Decision = wire.Reject
	case outcome.DecisionExpired:
		was.Decision = wire.Expire
	case outcome.DecisionAnswered:
		was.Value = result.Result
	}
	if !was.Same(wire.Answer{Decision: a.Decision, Value: a.Value, Arguments: a.Arguments}) {
		by := ""
		if stands.By != "" {
			by = " by " + stands.By
		}
		return nil, fault.New(fault.Conflict, "the step %s was %s already%s, at %s", text.Clip(step, 80), stands.Decision, by, stands.At.UTC().Format(time.RFC3339)).
			WithHint("that stands; see what came of it: stepjet get %s", doc.Run)
	}
	return stands, nil
}

// answeredIn finds what a person said of a step, an item of one, an amendment, or the plan ("="); nil where nobody did. With
// it comes the account of the step, nil of the plan and of an amendment.
func answeredIn(doc *outcome.Run, q *outcome.Question) (*outcome.Answered, *outcome.Step) {
	step := q.Step
	if q.Revision > 0 {
		i := slices.IndexFunc(doc.Amendments, func(a outcome.Amendment) bool { return a.Step == step && a.Revision == q.Revision })
		if i < 0 {
			return nil, nil
		}
		return doc.Amendments[i].Answer, nil
	}
	if step == subjects.RootScope {
		return doc.Approval, nil
	}
	find := func(all []outcome.Step) *outcome.Step {
		i := slices.IndexFunc(all, func(s outcome.Step) bool { return s.ID == step })
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	s := find(doc.Steps)
	for i := 0; s == nil && i < len(doc.Steps); i++ {
		s = find(doc.Steps[i].Items)
	}
	if s == nil || s.Answer == nil {
		return nil, nil
	}
	if s.Result == nil && doc.Outcome != nil {
		s.Result, _ = doc.Outcome.Results.Get(step)
	}
	return s.Answer, s
}
