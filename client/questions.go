package client

import (
	"context"
	"encoding/json"

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
// shows something else now, counts for nothing. It returns once the answer stands; asking twice is asking once. Errors:
// Conflict where something else stands or is asked, InvalidArguments, InvalidValue, TooLarge, Permission,
// AlreadyFinished, NotFound, NotReady where no orchestrator answers.
func (c *Client) Approve(ctx context.Context, q *outcome.Question, a Answer) (*outcome.Answered, error) {
	return c.answer(ctx, q, wire.Answer{Decision: wire.Approve, Arguments: a.Arguments, Reason: a.Reason, By: a.By})
}

// Reject fails the step that asks, or cancels the run whose plan does. Errors as those of Approve.
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
	a.Digest = q.Digest
	body, err := wire.AnswerRequest{Step: q.Step, Answer: a}.Body()
	if err != nil {
		return nil, err
	}
	verb := subjects.VerbApprove
	if q.Kind == outcome.Ask {
		verb = subjects.VerbAnswer
	}
	answer, err := c.ofOwner(ctx, name, verb, body, ownerWithin)
	if err != nil {
		return nil, err
	}
	var reply wire.AnswerReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return &reply.Answered, nil
}
