package client

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Word is what is said to an agent while it runs.
type Word struct {
	// Step is the step that calls the agent, by its token; empty: AgentStep.
	Step string
	// ID names the word, by 1 to 64 of [A-Za-z0-9_-]: the same id again is the same word, however often it is said.
	// Empty: a new one.
	ID   string
	Text string
	// Interrupt ends the round that the agent is in: nothing of it starts any more, and calls that are out are cancelled,
	// the planner's too. Else what runs is left alone.
	Interrupt bool
	// By names who says it. It is kept as unverified, unless the server says who asks, and then it is the server's word.
	By string
	// Generation says which run of the id is meant, such as Run.Generation: another is told nothing. 0: whichever has it.
	Generation uint64
}

// Heard is what became of a word.
type Heard struct {
	ID string
	// Round is the one whose planner is told of it, from 0; -1 as long as none has begun since.
	Round int
	// Already says that the same was said under this id before.
	Already bool
}

// Say says something to an agent of a run of this client's tenant: its planner is told with the next request, and a
// loop that would end goes on for it. Once it stands it is told once, unless the agent ends otherwise, as by a timeout,
// a cancel or a budget that is used up. Errors: AlreadyFinished for an agent that is over, or in its last round; InvalidID for a step that is
// none of an agent that has begun; Conflict where something else was said under the id; NotFound for a run that is not
// under way, InvalidValue, TooLarge for more than 16 KiB, LimitExceeded for more than 1,000 words, Permission,
// NotReady where no orchestrator answers.
func Say(ctx context.Context, c *Client, run string, w Word) (*Heard, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	if w.Step == "" {
		w.Step = AgentStep
	}
	if w.ID == "" {
		w.ID = nuid.Next()
	}
	content, err := json.Marshal(w.Text)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidValue, err, "what is said")
	}
	said := wire.Say{Content: content, By: w.By}
	if w.Interrupt {
		said.Mode = wire.Interrupt
	}
	body, err := wire.SayRequest{Agent: w.Step, ID: w.ID, Say: said}.Body()
	if err != nil {
		return nil, err
	}
	answer, err := c.ofOwner(ctx, name, w.Generation, subjects.VerbSay, body, ownerWithin)
	if err != nil {
		return nil, err
	}
	var reply wire.SayReply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	h := &Heard{ID: reply.ID, Round: -1, Already: reply.Already}
	if reply.Round != nil {
		h.Round = *reply.Round
	}
	return h, nil
}
