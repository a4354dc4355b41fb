package wire

import (
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
)

// Round is the record of what the answer of an agent's planner came to: the one decision of a round. Created once, by the
// owner, once the planner's call is over; everything in it follows from the records before.
type Round struct {
	// Fragment is what runs, as a document of the plan language; nil for nothing.
	Fragment json.RawMessage `json:"fragment,omitempty"`
	// Tools are the tools of the names by which the fragment calls them, where these are others.
	Tools map[string]string `json:"tools,omitempty"`
	// Bound are the arguments that its planner does not see, by the paths of the calls and their names, for who approves of the
	// round: a value, or {"bound_to", "bytes", "sha256"} of one that is not there yet or is long.
	Bound map[string]map[string]json.RawMessage `json:"bound,omitempty"`
	// Own are the names of the calls in it that the owner decides, and no tool.
	Own []string `json:"own,omitempty"`
	// Settled are the steps of it that have come to something already, by id.
	Settled map[string]Settled `json:"settled,omitempty"`
	// Waits are for steps of it those that they wait for beside what the fragment says, whatever these come to.
	Waits map[string][]string `json:"waits,omitempty"`
	// Rest are the steps of it that do not run.
	Rest []string `json:"rest,omitempty"`
	// Earlier are for the steps of it that stand for earlier rounds, such as r0, the steps of these whose results they have.
	Earlier map[string][]string `json:"earlier,omitempty"`
	// Direct are the steps of it with whose success the loop is over.
	Direct []string `json:"direct,omitempty"`
	// End is why the loop is over where nothing runs: output, response or no_steps; empty where it is not.
	End string `json:"end,omitempty"`
	// Output is what the agent comes to then; nil for null.
	Output json.RawMessage `json:"output,omitempty"`
	// Problems are why the answer could not be used.
	Problems []fault.Problem `json:"problems,omitempty"`
}

// Settled is what a call has come to that is not made: exactly one of its fields is set.
type Settled struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *fault.Error    `json:"error,omitempty"`
}

// Message writes a round as headers and body. Errors: Internal, for what is no JSON.
func (r *Round) Message() (nats.Header, []byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "writing a round")
	}
	return Versioned(), body, nil
}

// ParseRound reads a round. It never fails: the record stands and decides, and what can't be read is an answer of no use.
func ParseRound(body []byte) Round {
	var r Round
	if err := json.Unmarshal(body, &r); err != nil {
		return Round{Problems: []fault.Problem{{Code: fault.InvalidRecord, Message: "the record of the round can't be read"}}}
	}
	return r
}
