package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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

// Answered is the answer that stands for a question.
type Answered struct {
	outcome.Answered
	// Already says that it stood before this request, somebody's who said the same or an earlier one of this caller. It is
	// false for the one that counts.
	Already bool
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
	slices.SortFunc(all, func(x, y *outcome.Question) int { // entries are written anew, by an owner that begins, say
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Run, y.Run), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Step, y.Step))
	})
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
	large := &q.Arguments
	if q.Round != nil {
		large = &q.Plan
	}
	if *large, err = c.store.Archive.Blob(ctx, q.Blob); err != nil {
		return nil, err
	}
	return q, nil
}

// Approve lets what a question shows begin. The question says which: an answer to one that is not asked any more, or
// shows something else now, counts for nothing. It returns once the answer stands; asking twice is asking once, also
// once the run is over: of several that say the same one counts, and all others are told that it stood Already. A
// question without a digest is none that is open: to it nothing is answered, and what stands of the last that was asked
// under its step is returned where it says the same. Errors: Conflict where something else stands or is asked, Overtaken
// for an amendment that can't be made any more, InvalidArguments, InvalidValue, TooLarge, Permission, AlreadyFinished,
// NotFound, NotReady where no orchestrator answers.
func (c *Client) Approve(ctx context.Context, q *outcome.Question, a Answer) (*Answered, error) {
	return c.answer(ctx, q, wire.Answer{Decision: wire.Approve, Arguments: a.Arguments, Reason: a.Reason, By: a.By})
}

// Reject fails the step that asks, or cancels the run whose plan does; of an amendment, the plan goes on as it was; of a
// round of an agent, its planner is told the reason, and answers again.
// Errors as those of Approve.
func (c *Client) Reject(ctx context.Context, q *outcome.Question, a Answer) (*Answered, error) {
	return c.answer(ctx, q, wire.Answer{Decision: wire.Reject, Reason: a.Reason, By: a.By})
}

// Answer gives the step that asks its result: what it asked for, or, where it waits for an approval, the value that
// takes the place of what its tool would have returned. value is JSON, at most 256 KiB. To a question of a step's tool it is
// what the tool is told, which the run's document does not keep: once the run is over, any value is taken for the one that
// stands, and By says whose that was. Errors as those of Approve.
func (c *Client) Answer(
	ctx context.Context, q *outcome.Question, value json.RawMessage, a Answer,
) (*Answered, error) {
	if !json.Valid(value) {
		return nil, fault.New(fault.InvalidValue, "the answer is no JSON: %s", text.Clip(string(value), 80)).
			WithHint(`a text is written in quotes: "yes"`)
	}
	return c.answer(ctx, q, wire.Answer{Value: value, Reason: a.Reason, By: a.By})
}

func (c *Client) answer(ctx context.Context, q *outcome.Question, a wire.Answer) (*Answered, error) {
	name, err := c.name(q.Run)
	if err != nil {
		return nil, err
	}
	if a.Digest = q.Digest; a.Digest == "" {
		doc, err := c.get(ctx, name, ownerWithin)
		if err != nil {
			return nil, err
		}
		told := toolAnswered(doc, q)
		if told == nil || doc.Status != outcome.Running || q.Revision > 0 {
			return stoodBefore(ctx, c, doc, q, a)
		}
		a.Digest = told.Digest // the owner knows the value that its tool was told, which the document does not
	}
	body, err := wire.AnswerRequest{Step: q.Step, Answer: a}.Body()
	if err != nil {
		return nil, err
	}
	verb := subjects.VerbApprove
	if q.Kind == outcome.Ask {
		verb = subjects.VerbAnswer
	}
	answer, err := c.ofOwner(ctx, name, q.Generation, verb, body, ownerWithin)
	if code := fault.CodeOf(err); code == fault.AlreadyFinished || code == fault.NotFound {
		doc, _, bad := c.latest(ctx, name)
		if bad != nil || doc == nil || q.Generation > 0 && doc.Generation != q.Generation {
			return nil, err
		}
		return stoodBefore(ctx, c, doc, q, a)
	}
	if err != nil {
		return nil, err
	}
	var reply wire.AnswerReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return &Answered{reply.Answered, reply.Already}, nil
}

// stoodBefore is stood for a caller: what a document tells of was there before anybody was asked.
func stoodBefore(ctx context.Context, c *Client, doc *outcome.Run, q *outcome.Question, a wire.Answer) (*Answered, error) {
	x, err := stood(doc, q, a, func(h *outcome.Handle) ([]byte, error) { return c.Blob(ctx, h) })
	if err != nil {
		return nil, err
	}
	return &Answered{*x, true}, nil
}

// stood returns the answer that a document tells of, where it says the same as another. Errors: Conflict where it says
// something else, or is to something else, NotFound where nobody answered, NotReady where somebody is asked still,
// AlreadyFinished and Overtaken of an amendment whose plan was over before anybody answered, or which could not be made
// any more, and those of blob, which reads a large result.
func stood(doc *outcome.Run, q *outcome.Question, a wire.Answer, blob func(*outcome.Handle) ([]byte, error)) (*outcome.Answered, error) {
	if x := amendmentIn(doc, q); x != nil {
		return stoodOf(doc, x, a)
	}
	stands, of := answeredIn(doc, q.Step)
	if x := roundAnswered(doc, q); x != nil {
		stands, of = x, nil
	}
	told := toolAnswered(doc, q)
	if told != nil {
		stands, of = told, nil
	}
	switch {
	case stands == nil || q.Revision > 0:
		return nil, fault.New(fault.NotFound, "the step %s of run %q waits for no answer", text.Clip(q.Step, 80), doc.Run).
			WithHint("what waits: stepjet questions list; where the run stands: stepjet get %s", doc.Run)
	case a.Digest != "" && stands.Digest != "" && a.Digest != stands.Digest:
		return nil, fault.New(fault.Conflict, "this answer is to something else than what the step %s was asked", text.Clip(q.Step, 80)).
			WithHint("what was decided, and by whom: stepjet get %s", doc.Run)
	}
	was := asWritten(stands)
	if stands.Decision == outcome.DecisionAnswered && of != nil {
		if was.Value = of.Result; was.Value == nil && of.Blob != nil && a.Value != nil {
			raw, err := blob(of.Blob)
			if err != nil {
				return nil, err
			}
			was.Value = raw
		}
	}
	if told != nil && told.Decision == outcome.DecisionAnswered {
		was.Value = a.Value // nobody can compare it: documents don't keep what tools were told
	}
	if a.Digest = ""; !was.Same(a) {
		return nil, otherwise("the step "+text.Clip(q.Step, 80), stands, doc.Run)
	}
	return stands, nil
}

// stoodOf is stood for an amendment.
func stoodOf(doc *outcome.Run, x *outcome.Amendment, a wire.Answer) (*outcome.Answered, error) {
	what, was := fmt.Sprintf("revision %d of the plan of %s", x.Revision, text.Clip(x.Step, 80)), wire.Answer{}
	if x.Answer != nil {
		was = asWritten(x.Answer)
	}
	switch a.Digest = ""; {
	case x.Waits:
		return nil, fault.New(fault.NotReady, "%s waits for an approval, and is not shown yet", what).
			WithHint("look at it in a moment: stepjet questions show %s %s", doc.Run, x.Step)
	case x.Answer == nil:
		return nil, fault.New(fault.AlreadyFinished, "%s does nothing, as its plan came to its end before anybody answered", what).
			WithHint("what is to be done besides is a plan of its own")
	case !was.Same(a):
		return nil, otherwise(what, x.Answer, doc.Run)
	case x.Error != nil && x.Error.Code != fault.Rejected:
		return nil, fault.New(fault.Overtaken, "%s was approved, and could not be made any more: %s", what, x.Error.Message).
			WithHint("look at the plan as it is now: stepjet get %s", doc.Run)
	}
	return x.Answer, nil
}

// otherwise is the error where an answer stands that says something else than another.
func otherwise(what string, stands *outcome.Answered, run string) error {
	by := ""
	if stands.By != "" {
		by = " by " + stands.By
	}
	return fault.New(fault.Conflict, "%s was %s already%s, at %s", what, stands.Decision, by, stands.At.UTC().Format(time.RFC3339)).
		WithHint("that stands; see what came of it: stepjet get %s", run)
}

// asWritten returns an answer as it was given, without its value, which is the result of the step.
func asWritten(x *outcome.Answered) wire.Answer {
	decision := map[string]string{
		outcome.DecisionApproved: wire.Approve, outcome.DecisionRejected: wire.Reject, outcome.DecisionExpired: wire.Expire,
	}
	return wire.Answer{Decision: decision[x.Decision], Arguments: x.Arguments}
}

// amendmentIn finds the amendment that a question was about: by its digest or revision, else the last that anybody was
// asked about under the token, since the plan and each amendment of it are asked about under the same. nil for none.
func amendmentIn(doc *outcome.Run, q *outcome.Question) *outcome.Amendment {
	for i := range slices.Backward(doc.Amendments) {
		x := &doc.Amendments[i]
		switch {
		case x.Step != q.Step || x.Digest == "":
		case q.Digest != "" && q.Digest != x.Digest:
		case q.Revision > 0 && q.Revision != x.Revision:
		default:
			return x
		}
	}
	return nil
}

// answeredIn finds what a person said of a step, an item of one, or the plan ("="), besides its amendments; nil where
// nobody did. With it comes the account of the step, nil of the plan.
func answeredIn(doc *outcome.Run, step string) (*outcome.Answered, *outcome.Step) {
	if step == subjects.RootScope {
		return doc.Approval, nil
	}
	s := stepIn(doc.Steps, step)
	if s == nil || s.Answer == nil {
		return nil, nil
	}
	if s.Result == nil && doc.Outcome != nil {
		s.Result, _ = doc.Outcome.Results.Get(step)
	}
	return s.Answer, s
}

// toolAnswered finds what was said to a question of a step's tool: to the one of the digest, or, without, to the last where
// nothing else was asked of the step. nil where the question was another's.
func toolAnswered(doc *outcome.Run, q *outcome.Question) *outcome.Answered {
	s := stepIn(doc.Steps, q.Step)
	if s == nil {
		return nil
	}
	for _, x := range slices.Backward(s.Answers) {
		if q.Digest == x.Digest || q.Digest == "" && s.Answer == nil {
			return x
		}
	}
	return nil
}

// roundAnswered finds what was said of a round of an agent: it stands with the call of the round's planner. nil where the
// question was about none.
func roundAnswered(doc *outcome.Run, q *outcome.Question) *outcome.Answered {
	s := stepIn(doc.Steps, q.Step)
	if s == nil || q.Digest == "" {
		return nil
	}
	for i := range s.Steps {
		if x := s.Steps[i].Answer; x != nil && x.Digest == q.Digest {
			return x
		}
	}
	return nil
}

// stepIn finds a step by its token, wherever it is.
func stepIn(all []outcome.Step, token string) *outcome.Step {
	for i := range all {
		s := &all[i]
		if s.ID == token {
			return s
		}
		for _, within := range [][]outcome.Step{s.Items, s.Steps} {
			if found := stepIn(within, token); found != nil {
				return found
			}
		}
	}
	return nil
}
