package wire

import (
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
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
	// Begun are the steps of it that its planner had handed over before the answer was whole, and that have begun.
	Begun []string `json:"begun,omitempty"`
	// End is why the loop is over where nothing runs, or nothing but what had begun: output, response or no_steps; empty where it is not.
	End string `json:"end,omitempty"`
	// Output is what the agent comes to then; nil for null.
	Output json.RawMessage `json:"output,omitempty"`
	// Problems are why the answer could not be used.
	Problems []fault.Problem `json:"problems,omitempty"`
}

// MaxRound is the most bytes of a round, wherever they lie. An answer has at most 4 MiB; what is decided of it comes on top.
const MaxRound = 16 << 20

// largeRound is the record of a round of more than InlineLimit bytes.
type largeRound struct {
	Needs  []string        `json:"needs"`
	Handle *outcome.Handle `json:"handle"`
}

// LargeRoundNeeds are what has to be known to follow the record of a round that lies in a blob.
func LargeRoundNeeds() []string { return []string{LargeRounds} }

// LargeRoundMessage writes the record of a round that lies in a blob, which has the body that the record would have.
func LargeRoundMessage(blob *outcome.Handle) (nats.Header, []byte) {
	body, _ := json.Marshal(largeRound{Needs: LargeRoundNeeds(), Handle: blob}) // texts and numbers: it can't fail
	return nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}, body
}

// RoundBlob returns where the bytes of a round lie, by the record of a run whose large values lie in a bucket; nil where they
// are the record's own, or where it names no blob of the run's rounds: what ParseRound makes of it is an answer of no use
// then, for everybody.
func RoundBlob(h nats.Header, body []byte, r subjects.Run, generation uint64, bucket string) *outcome.Handle {
	if RecordNeeds(h, body) == nil {
		return nil
	}
	var large largeRound
	if json.Unmarshal(body, &large) != nil || large.Handle == nil {
		return nil
	}
	blob := large.Handle
	digest, is := strings.CutPrefix(blob.Name, subjects.RoundBlobName(r, generation, ""))
	if !is || digest != blob.SHA256 || blob.Bucket != "" && blob.Bucket != bucket || blob.Size > MaxRound {
		return nil
	}
	return blob
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
	var r struct {
		Round
		Handle json.RawMessage `json:"handle"`
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Handle != nil {
		return UnreadableRound()
	}
	return r.Round
}

// UnreadableRound is what the record of a round stands for that can't be read, or whose blob can't.
func UnreadableRound() Round {
	return Round{Problems: []fault.Problem{{Code: fault.InvalidRecord, Message: "the record of the round can't be read"}}}
}
