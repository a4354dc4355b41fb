package outcome

import (
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// QuestionKind is what a person is asked for.
type QuestionKind string

// The kinds of questions.
const (
	// Approval asks whether a step, or the whole plan, may begin.
	Approval QuestionKind = "approval"
	// Ask asks for a value: the result of a step that calls the tool "ask", or what the worker of a step's tool asks for in
	// the middle of a call.
	Ask QuestionKind = "ask"
)

// Question is what a run waits for a person to say, as it stands in the bucket "questions" for as long as it is open.
// It is derived from the run's records: what decides is the run, which knows its questions without it.
type Question struct {
	Run        string `json:"run"` // plain id
	Tenant     string `json:"tenant"`
	Generation uint64 `json:"generation"`
	// Step is the token of the step or the item that waits; "=" for the plan itself.
	Step string `json:"step"`
	// Number counts the questions of the step, from 1.
	Number int          `json:"number"`
	Kind   QuestionKind `json:"kind"`
	Tool   string       `json:"tool,omitempty"`
	Text   string       `json:"text,omitempty"`
	// Schema and Choices say which values are an answer, where Kind is Ask.
	Schema  json.RawMessage `json:"schema,omitempty"`
	Choices json.RawMessage `json:"choices,omitempty"`
	// Arguments are those that the tool would be called with, resolved; where Items is not 0, the list of those of all
	// items. What is larger than 256 KiB lies in Blob instead, and so does the Plan of a Round.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Blob      *Handle         `json:"blob,omitempty"`
	Items     int             `json:"items,omitempty"`
	// Guard says what a guard of an agent asks about: "input", "call", "result" or "output"; empty where none does. Arguments
	// are that then. Step names the call, or the step that calls the agent.
	Guard string `json:"guard,omitempty"`
	// Attempt is the one that ended with the question of its worker; 0 where the plan asks.
	Attempt int `json:"attempt,omitempty"`
	// Revision is the number of the amendment that is asked about, 0 where it is the step or the plan itself. Step then
	// names the step whose plan is changed, "=" for that of the run; Change is what is changed, as it stands in the request;
	// By asked for it, for Reason.
	Revision int             `json:"revision,omitempty"`
	Change   json.RawMessage `json:"change,omitempty"`
	By       string          `json:"by,omitempty"`
	// Verified says that By is the server's word.
	Verified bool   `json:"verified,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Round is the number of the round of an agent that is asked about, from 0; nil where it is none. Step then names the
	// step that calls the agent, Tool the agent, and Plan is what would run.
	Round *int            `json:"round,omitempty"`
	Plan  json.RawMessage `json:"plan,omitempty"`
	// Digest names what is shown. An answer repeats it, so that it counts for nothing else.
	Digest string `json:"digest"`
	// Since is when it was asked, Until when it is answered without anybody, by OnTimeout; zero: it waits as long as
	// the run. OnTimeout is "approve" or "reject", and empty where Kind is Ask: then the step fails with timeout.
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until,omitempty"`
	OnTimeout string     `json:"on_timeout,omitempty"`
}

// Amendment is what became of an amendment of a run whose plan was submitted for an approval.
type Amendment struct {
	// Step names the step whose plan it is, "=" for that of the run.
	Step     string `json:"step"`
	Revision int    `json:"revision"`
	By       string `json:"by,omitempty"`
	// Verified says that By is the server's word.
	Verified bool      `json:"verified,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	At       time.Time `json:"at"` // when it was recorded
	// Waits says that it does nothing yet, because a person is asked.
	Waits bool `json:"waits,omitempty"`
	// Answer is what a person said of it; nil where nobody did, or had to.
	Answer *Answered `json:"answer,omitempty"`
	// Error is why it does nothing; nil for one that waits, or is in force.
	Error *fault.Error `json:"error,omitempty"`
	// Digest names what was asked about it; empty where nobody was.
	Digest string `json:"digest,omitempty"`
}

// Answered is an answer that counted, in the account of the step that it was for.
type Answered struct {
	// Decision is approved, rejected, answered or expired.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	// By is who answered. Verified says that it is the server's word; else it is what the answer said of itself.
	By       string `json:"by,omitempty"`
	Verified bool   `json:"verified,omitempty"`
	// Arguments are those that the step was called with instead of the plan's; nil where these were left.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	At        time.Time       `json:"at"`
	// Digest is that of the question that it is an answer to; empty in documents of orchestrators that did not say it.
	Digest string `json:"digest,omitempty"`
}

// The decisions of answers that counted.
const (
	DecisionApproved = "approved"
	DecisionRejected = "rejected"
	DecisionAnswered = "answered"
	DecisionExpired  = "expired"
)

// Refused is what a planner answered in a round of an agent that came to nothing: it could not be used, nobody approved of
// it, or its output was not let pass.
type Refused struct {
	Round int `json:"round"`
	// Problems are the first of them, Count how many there are.
	Problems []fault.Problem `json:"problems"`
	Count    int             `json:"count"`
}

// ToolLog is a call that an agent made by a command of its planner, as the command asked for it.
type ToolLog struct {
	Purpose        string          `json:"purpose"`
	ToolName       string          `json:"tool_name"`
	Kwargs         json.RawMessage `json:"kwargs"`
	TodoSuggestion string          `json:"todo_suggestion"`
	Next           string          `json:"next"`
	Success        bool            `json:"success"`
	// Result is what a success returned, Error why a failure is one, with code and message; null is nothing. What is long is the
	// beginning of it, as in the planner's requests.
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Said is a word to an agent.
type Said struct {
	ID string `json:"id"`
	// By is who said it; Verified says that this is the server's word.
	By       string `json:"by,omitempty"`
	Verified bool   `json:"verified,omitempty"`
	// Interrupt says that it ended the round that it came in.
	Interrupt bool `json:"interrupt,omitempty"`
	// Round is the one whose planner is told of it, from 0; nil as long as none has taken it.
	Round *int `json:"round,omitempty"`
	// Content is a text or a list of parts, as it was said. Where it is too long to stand here it is the beginning of the text,
	// nil for parts, and Bytes is how long the JSON of the whole is: a planner is told that, and no document keeps it.
	Content json.RawMessage `json:"content,omitempty"`
	Bytes   int64           `json:"bytes,omitempty"`
}
