package worker

import (
	"context"
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Question is what a tool asks a person in the middle of its work.
type Question struct {
	// Text is what the person reads. Secrets of the step that stand in it are taken out; all else is shown as it is.
	Text string
	// Schema is a JSON schema of the answer, and Choices are the values that are an answer; nil for any.
	Schema  json.RawMessage
	Choices []json.RawMessage
	// State is what the handler needs to go on, JSON of 4 KiB at most: the next attempt finds it in its Reply, perhaps in
	// another worker. It is not to hold secrets. nil for nothing.
	State json.RawMessage
}

// Reply is what a person answered to a question of an earlier attempt.
type Reply struct {
	// Attempt is the one that asked.
	Attempt int
	// Answer is a JSON value that fits the question's schema and choices.
	Answer json.RawMessage
	// State is that of the question; nil for none.
	State json.RawMessage
}

// Ask asks a person something. It returns the error that the handler has to return, so that the attempt ends with the
// question: its step then waits without a worker, a lease or a place in the tool's limit, for as long as it takes. The
// answer begins the next attempt, with the same arguments, whose handler Answered tells of it:
//
//	if r, ok := worker.Answered(ctx); ok {
//		return book(ctx, in, r.Answer, r.State)
//	}
//	return nil, worker.Ask(ctx, worker.Question{Text: "Which seat?", State: held})
//
// Where it is rejected the step fails with rejected, and no handler is called again. A handler that is answered may ask
// again, up to MayAsk times. What it did before it asked has been done: a worker that is killed before the question is
// stored does it again, as it does all else.
//
// The error is a tool_terminal where nobody can be asked: the run's contract of the tool doesn't say that it asks
// (tool.Orchestration.Asks), it has asked too often, the question is none, in a batch, and outside of a handler.
func Ask(ctx context.Context, q Question) error {
	x, _ := ctx.Value(executionKey{}).(*execution)
	switch {
	case x == nil:
		return nobody("this is no handler of a step", "a batch can't ask either: leave batch out of the tool's contract")
	case x.step.MayAsk == 0 && x.step.Reply != nil:
		return nobody("the tool has asked too often", "have it ask for several things at a time")
	case x.step.MayAsk == 0:
		return nobody("the run's contract of the tool does not say that it asks",
			`write "x-orchestration": {"asks": true} in its definition; runs that begin then may wait for a person`)
	}
	asks := &wire.Asks{Asked: tool.Asked{Question: q.Text, Schema: q.Schema, Choices: q.Choices}, State: q.State}
	asks.Question = x.redactor().Text(asks.Question)
	if err := asks.Check(); err != nil {
		return err
	}
	return &inquiry{asks}
}

func nobody(why, hint string) error {
	return fault.New(fault.ToolTerminal, "nobody can be asked: %s", why).WithHint("%s", hint)
}

// inquiry is how a handler says that a person is asked.
type inquiry struct{ asks *wire.Asks }

// Error says what is asked, for who takes it for a failure.
func (i *inquiry) Error() string { return "a person is asked: " + i.asks.Question }

// Answered returns what a person said to the last question of an earlier attempt of the step; ok is false where nobody was
// asked. An attempt that follows one which failed after the answer has it too, so that nobody is asked twice.
func Answered(ctx context.Context) (r Reply, ok bool) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil || x.step.Reply == nil {
		return Reply{}, false
	}
	return Reply(*x.step.Reply), true
}

// MayAsk returns how many more questions the handler's step may ask; 0 where it may ask none.
func MayAsk(ctx context.Context) int {
	if x, _ := ctx.Value(executionKey{}).(*execution); x != nil {
		return x.step.MayAsk
	}
	return 0
}
