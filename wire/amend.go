package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// Change is what an amendment does to the plan of a scope: steps are taken out of it and added, in this order, then it
// gets another output, and is closed.
type Change struct {
	// Add are steps, as they stand in a plan.
	Add []json.RawMessage `json:"add,omitempty"`
	// Discard are the steps that are no part of the plan any more. One that is discarded and added is written anew.
	Discard Discard `json:"discard,omitzero"`
	// Output and OutputSteps take the place of those of the plan; nil leaves them.
	Output      json.RawMessage `json:"output,omitempty"`
	OutputSteps []string        `json:"output_steps,omitempty"`
	// Close says that an open scope is over with its steps.
	Close bool `json:"close,omitempty"`
	// KeepOpen changes nothing: an open scope waits for the next amendment anew, as with every one.
	KeepOpen bool `json:"keep_open,omitempty"`
}

// Discard names steps: some, or all the rest, which is what is not decided where the amendment stands. Its JSON is a list
// of ids, or "rest".
type Discard struct {
	Steps []string
	Rest  bool
}

// theRest is the JSON of a Discard that means all the rest.
const theRest = "rest"

// IsZero reports whether nothing is discarded.
func (d Discard) IsZero() bool { return !d.Rest && len(d.Steps) == 0 }

// MarshalJSON writes the list or the word.
func (d Discard) MarshalJSON() ([]byte, error) {
	if d.Rest {
		return json.Marshal(theRest)
	}
	return json.Marshal(d.Steps)
}

// UnmarshalJSON reads the list or the word. Errors: InvalidValue for anything else.
func (d *Discard) UnmarshalJSON(raw []byte) error {
	*d = Discard{}
	if json.Unmarshal(raw, &d.Steps) == nil {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) != nil || word != theRest {
		return fault.New(fault.InvalidValue, `"discard" is a list of step ids, or "rest"`)
	}
	d.Steps, d.Rest = nil, true
	return nil
}

// IsZero reports whether a change does nothing.
func (c *Change) IsZero() bool {
	return len(c.Add) == 0 && c.Discard.IsZero() && c.Output == nil && c.OutputSteps == nil && !c.Close && !c.KeepOpen
}

// Amend is the record that a scope of a run was changed. Its number is one more than the last of its scope.
type Amend struct {
	// Digest is that of the request, by which one that is made twice is known.
	Digest string `json:"digest"`
	Change
	// Tools are the frozen contracts of the tools that the run used none of before, by name.
	Tools map[string]*FrozenTool `json:"tools,omitempty"`
	// Round is what was decided of the added steps when they were admitted, where the scope is a round of an agent; nil for
	// any other.
	Round *AmendedRound `json:"round,omitempty"`
	// Reason and By say why, and who asked.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Verified says that By is the server's word.
	Verified bool `json:"verified,omitempty"`
	// Approved says that nobody is asked about it, though the plan was submitted for an approval: who asked for it may give
	// that, or the run's owner closes what is open.
	Approved bool `json:"approved,omitempty"`
	// Approves is the digest of the question about the plan as a whole that it answers: the plan is approved of as it is with
	// the amendment. Empty for any other.
	Approves string `json:"approves,omitempty"`
	// ByOwner says that the run's owner closes an open plan which nobody else may change.
	ByOwner bool `json:"by_owner,omitempty"`
	// Streamed says that a planner hands over what is added, before its answer is whole, and by which attempt; nil for any
	// other amendment.
	Streamed *Streamed `json:"streamed,omitempty"`
	// Needs are what must be known to follow it: who doesn't know all of them leaves the run alone from here on.
	Needs []string `json:"needs,omitempty"`
}

// Streamed names the attempt by which a planner hands over steps, and the claim of that attempt.
type Streamed struct {
	Attempt int    `json:"attempt"`
	Nonce   string `json:"nonce"`
}

// AmendedRound is what was decided of steps that are added to a round, as Round says it of its own.
type AmendedRound struct {
	Tools   map[string]string   `json:"tools,omitempty"`
	Own     []string            `json:"own,omitempty"`
	Settled map[string]Settled  `json:"settled,omitempty"`
	Waits   map[string][]string `json:"waits,omitempty"`
	Earlier map[string][]string `json:"earlier,omitempty"`
	Direct  []string            `json:"direct,omitempty"`
	// Reaches are for the steps that stood for earlier rounds before, such as r0, the steps of these whose results they have
	// from here on besides.
	Reaches map[string][]string `json:"reaches,omitempty"`
	// Again are those that are made although they were before.
	Again []string `json:"again,omitempty"`
}

// AmendedRounds is the need of an amendment of a round of an agent. To who does not know of it there is no such scope.
const AmendedRounds = "amended-rounds"

// DiscardedCalls is the need of an amendment that discards calls of a round of an agent. To who does not know of it the output that
// was put forward beside them is what the agent comes to, with nothing in their places.
const DiscardedCalls = "discarded-calls"

// RoundReferences is the need of an amendment of a round whose steps refer to more of an earlier round than the round had of it
// before. To who does not know of it there is nothing that these refer to.
const RoundReferences = "round-references"

// ApprovedAmendments is the need of an amendment of a plan that was submitted for an approval, and of such a plan that is
// open: it is in force where its answer stands. An orchestrator of before takes it for one that does nothing.
const ApprovedAmendments = "approved-amendments"

// EditedApprovals is the need of an amendment by which a plan is approved of that waits for its approval. To who does not
// know of it, it does nothing.
const EditedApprovals = "edited-approvals"

// OwnClose is the need of an amendment by which an owner closes an open plan that nobody else may change: that of a template,
// or one within a round of an agent. To who does not know of it, it does nothing.
const OwnClose = "own-close"

// Message writes an amendment as headers and body. The bytes of what is added are kept, but for white space. Errors:
// Internal, for what is no JSON.
func (a *Amend) Message() (nats.Header, []byte, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "writing an amendment")
	}
	if len(a.Needs) > 0 {
		return nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}, body, nil
	}
	return Versioned(), body, nil
}

// ParseAmend reads an amendment. It never fails: what can't be read has no digest, and changes nothing.
func ParseAmend(body []byte) Amend {
	var a Amend
	if json.Unmarshal(body, &a) != nil || a.Digest == "" {
		return Amend{}
	}
	a.Reason, a.By = text.Clip(a.Reason, maxReason), text.Clip(a.By, maxBy)
	return a
}

// AmendRequest is the body of a request to change a scope of a run.
type AmendRequest struct {
	// Scope is the token of the composite whose plan is meant; RootScope, or nothing, is the run's own.
	Scope string `json:"scope,omitempty"`
	// Revision is the last one of the scope that the asker knows: 0 for the plan as it was submitted.
	Revision int `json:"revision"`
	Change
	// Plan is the whole scope as it should be, in the place of what is to be added and discarded; nil for none.
	Plan json.RawMessage `json:"plan,omitempty"`
	// Approves is the digest of the question about the plan that waits for its approval: it has that with the amendment.
	Approves string `json:"approves,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`

	// Verified says that By is the server's word. No request says it.
	Verified bool `json:"-"`
}

// MaxAmendment is the largest request for an amendment, in bytes.
const MaxAmendment = InlineLimit

// Body writes the request. Errors: InvalidValue for what is no JSON.
func (r *AmendRequest) Body() ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fault.New(fault.InvalidValue, "the amendment is no JSON: %v", err).WithHint("steps, output and plan are JSON values")
	}
	return body, nil
}

// ParseAmendRequest reads the request, and what the server says of who made it. Errors: InvalidValue, which says how it
// is written; TooLarge for more than MaxAmendment; Permission for a header that hides who asks (Requester).
func ParseAmendRequest(m *nats.Msg) (AmendRequest, error) {
	var r AmendRequest
	if len(m.Data) > MaxAmendment {
		return r, fault.New(fault.TooLarge, "the amendment has %d bytes, at most %d are allowed", len(m.Data), MaxAmendment).
			WithHint("amend in several parts, or hand large data on by a name or an address")
	}
	if err := readOnce(m.Data, "the amendment", amendKeys, &r); err != nil {
		return r, err.WithHint(`write {"revision": 0, "add": [steps], "discard": ["id"] or "rest"}, "output", "output_steps", "close": true, "keep_open": true, or "plan"`)
	}
	if r.Scope == "" {
		r.Scope = subjects.RootScope
	}
	switch {
	case r.Revision < 0:
		return r, fault.New(fault.InvalidValue, "the revision %d is none", r.Revision).WithHint("0 for the plan as it was submitted")
	case r.Plan != nil && (len(r.Add) > 0 || !r.Discard.IsZero() || r.Output != nil || r.OutputSteps != nil):
		return r, fault.New(fault.InvalidValue, `"plan" is all of the scope as it should be, so nothing is added or discarded beside it`).
			WithHint(`leave "plan" out, or "add", "discard", "output" and "output_steps"`)
	case r.Plan == nil && r.IsZero():
		return r, fault.New(fault.InvalidValue, "the amendment changes nothing").
			WithHint(`"add", "discard", "output", "output_steps", "close": true, "keep_open": true, or "plan"`)
	case r.Output != nil && r.OutputSteps != nil:
		return r, fault.New(fault.InvalidValue, `an amendment has "output" or "output_steps", not both`).WithHint("leave one of them out")
	}
	r.Reason, r.By = text.Clip(r.Reason, maxReason), text.Clip(r.By, maxBy)
	who, err := Requester(m)
	if r.Verified = who != ""; r.Verified {
		r.By = who
	}
	return r, err
}

// amendKeys are the members that a request for an amendment may have.
var amendKeys = []string{"scope", "revision", "add", "discard", "output", "output_steps", "close", "keep_open", "plan", "approves", "reason", "by", meantKey}

// Digest names what is asked for: the scope, the revision that it is about, and the change, whoever asks and why. White
// space doesn't count.
func (r *AmendRequest) Digest() string {
	named := *r
	named.Reason, named.By = "", ""
	body, _ := json.Marshal(&named) // it was read from JSON
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// AmendReply is the answer to a request for an amendment: it is in force, or waits for an approval.
type AmendReply struct {
	Run      string `json:"run"` // plain id
	Scope    string `json:"scope"`
	Revision int    `json:"revision"`
	// Steps is how many steps the plan of the scope has now, with those that were discarded.
	Steps int `json:"steps"`
	// Already says that it stood before this request, which is the same.
	Already bool `json:"already,omitempty"`
	// Waits says that it does nothing yet: a person is asked, whose question goes by the scope. Who asks again is told what
	// became of it.
	Waits bool `json:"waits,omitempty"`
	// Warnings are what is odd about the added steps but harmless, with paths into the request. They are told to who has it
	// recorded, and to nobody who asks for the same again.
	Warnings []fault.Problem `json:"warnings,omitempty"`
}

// Body writes the answer.
func (a AmendReply) Body() []byte {
	body, _ := json.Marshal(a) // texts and numbers: it can't fail
	return body
}

// AmendConflict is what the error of code conflict has as details, where the scope was amended since.
type AmendConflict struct {
	Revision int `json:"revision"` // the last one
}

// AmendProblems are the details of the error of an amendment that is refused for what it says: all at once.
type AmendProblems struct {
	Problems []fault.Problem `json:"problems"`
}
