package outcome

import (
	"encoding/json"
	"time"
)

// QuestionKind is what a person is asked for.
type QuestionKind string

// The kinds of questions.
const (
	// Approval asks whether a step, or the whole plan, may begin.
	Approval QuestionKind = "approval"
	// Ask asks for a value: the result of a step that calls the tool "ask".
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
	// items. What is larger than 256 KiB lies in Blob instead.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Blob      *Handle         `json:"blob,omitempty"`
	Items     int             `json:"items,omitempty"`
	// Digest names what is shown. An answer repeats it, so that it counts for nothing else.
	Digest string `json:"digest"`
	// Since is when it was asked, Until when it is answered without anybody, by OnTimeout; zero: it waits as long as
	// the run. OnTimeout is "approve" or "reject", and empty where Kind is Ask: then the step fails with timeout.
	Since     time.Time  `json:"since"`
	Until     *time.Time `json:"until,omitempty"`
	OnTimeout string     `json:"on_timeout,omitempty"`
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
}

// The decisions of answers that counted.
const (
	DecisionApproved = "approved"
	DecisionRejected = "rejected"
	DecisionAnswered = "answered"
	DecisionExpired  = "expired"
)
