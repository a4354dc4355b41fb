// Package outcome holds the documents that come out of a run: the compact outcome that goes into a model's context, and
// the full run for people and programs. Both are plain data with a fixed JSON form (docs/protocol.md).
package outcome

import (
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/unknown"
)

// RunStatus is what a run came to, or where it stands.
type RunStatus string

// The statuses of a run. All but Running are terminal.
const (
	Running   RunStatus = "running"
	Succeeded RunStatus = "succeeded" // nothing but optional steps failed
	Partial   RunStatus = "partial"   // at least one output step succeeded
	Failed    RunStatus = "failed"    // no output step succeeded
	Cancelled RunStatus = "cancelled" // somebody cancelled it
	Expired   RunStatus = "expired"   // its deadline passed
	Rejected  RunStatus = "rejected"  // the plan was not valid; nothing ran
)

// StepStatus is where a step stands.
type StepStatus string

// The statuses of a step. The last five are terminal.
const (
	StepWaiting   StepStatus = "waiting"  // for a dependency
	StepAsking    StepStatus = "asking"   // for a person's answer
	StepReady     StepStatus = "ready"    // its inputs are there, it is on its way to a worker
	StepRunning   StepStatus = "running"  // a worker has it (known only from events)
	StepRetrying  StepStatus = "retrying" // waiting for its next attempt
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed"
	StepSkipped   StepStatus = "skipped"
	StepCancelled StepStatus = "cancelled"
	StepNotTaken  StepStatus = "not_taken" // its condition was false, or a step was not taken whose result it refers to
)

// Terminal reports whether a step in this status is over.
func (s StepStatus) Terminal() bool {
	return s == StepSucceeded || s == StepFailed || s == StepSkipped || s == StepCancelled ||
		s == StepNotTaken
}

// Unsuccessful reports whether a step in this status is over and came to nothing though it should have: it failed, was
// skipped or was cancelled. One that was not taken is not among them.
func (s StepStatus) Unsuccessful() bool {
	return s == StepFailed || s == StepSkipped || s == StepCancelled
}

// Outcome is what goes back to the agent: only the results asked for, and every error.
type Outcome struct {
	Run    string    `json:"run"`
	Status RunStatus `json:"status"`
	// Generation is that of the plan which came to this: the sequence in the acknowledgement of its submission. A
	// rejected run leaves its id to a later plan, so whoever submitted that one doesn't take the rejection for its own.
	// 0: not known.
	Generation uint64  `json:"generation,omitempty"`
	Results    Results `json:"results"`
	// Output is what the plan came to that says so, in place of Results; nil for any other, and where there was nothing
	// that it could be made of.
	Output json.RawMessage `json:"output,omitempty"`
	Errors []StepError     `json:"errors"`
	// NotTaken are the steps whose condition was false, and those that only had a use with them; nil for none.
	NotTaken []string        `json:"not_taken,omitempty"`
	Problems []fault.Problem `json:"problems,omitempty"`
	Warnings []fault.Problem `json:"warnings,omitempty"`
	Stats    Stats           `json:"stats"`

	unknown unknown.Fields // of a newer version: they are written as they were read
}

// Result is the raw JSON that one step returned.
type Result struct {
	Step string
	JSON json.RawMessage
}

// Results are written as one JSON object whose keys keep their order: that of output_steps.
type Results []Result

// Get returns a step's result, and whether it is there.
func (r Results) Get(step string) (json.RawMessage, bool) {
	for _, x := range r {
		if x.Step == step {
			return x.JSON, true
		}
	}
	return nil, false
}

// StepError names one step that did not succeed, and why.
type StepError struct {
	Step string     `json:"step"`
	Code fault.Code `json:"code"`
	// ToolCode is what the tool itself called it (fault.Error.ToolCode); only in runs of language 2.
	ToolCode string `json:"tool_code,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// HandledBy is the step that dealt with the failure, which then does not count for the run's status.
	HandledBy string `json:"handled_by,omitempty"`
}

// Stats counts a run's steps and bytes.
type Stats struct {
	Steps     int `json:"steps"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	Cancelled int `json:"cancelled,omitempty"`
	NotTaken  int `json:"not_taken,omitempty"`
	// Items counts those of all for_each steps, ItemsFailed those of them that did not succeed. A step that tolerates
	// failed items succeeds all the same.
	Items       int `json:"items,omitempty"`
	ItemsFailed int `json:"items_failed,omitempty"`
	// ElapsedMS is the time from the plan's record to the record that decided the last step, in milliseconds.
	ElapsedMS float64 `json:"elapsed_ms"`
	// BytesReturned counts the bytes of the results in the outcome, BytesKeptOut those of all other successful steps.
	BytesReturned int64 `json:"bytes_returned"`
	BytesKeptOut  int64 `json:"bytes_kept_out"`
	// TokensKeptOut estimates what the model did not have to read: bytes / 4.
	TokensKeptOut int64 `json:"tokens_kept_out_estimate"`
}

// Handle says where a large value lies: an object of the object store.
type Handle struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // hex
	// Checked says that whoever stored it has seen that it is a value: JSON as plan.Output takes it, or text where the
	// result says so. Of a result that isn't checked the orchestrator has to read it all before anything goes on.
	Checked bool `json:"checked,omitempty"`
	// NUID and Chunks say which messages of the object store hold it: the first so many of the chunks of that name.
	// Without a NUID, in a handle of before, what the store says of Name counts.
	NUID   string `json:"nuid,omitempty"`
	Chunks int    `json:"chunks,omitempty"`
	// Bucket is that of the run's own tenant, where it is a declared one; empty for "blobs". Any other is believed by
	// nobody.
	Bucket string `json:"bucket,omitempty"`
}

// Run is the full document of a run, kept in history and shown by "stepjet get". Times are those of the ledger's
// records, so that every reader sees the same.
type Run struct {
	Version    int    `json:"version"`
	Run        string `json:"run"`
	Tenant     string `json:"tenant"`
	Generation uint64 `json:"generation"`
	// Digest is the SHA-256 of the plan's bytes, in hex: the same plan means the same bytes.
	Digest    string    `json:"digest"`
	Status    RunStatus `json:"status"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Finished  time.Time `json:"finished,omitzero"`
	// StoppedBy says who cancelled the run, or "deadline".
	StoppedBy string `json:"stopped_by,omitempty"`
	// RetryOf is the run whose successes this one took over, RetryFrom the step it was told to begin from.
	RetryOf   string `json:"retry_of,omitempty"`
	RetryFrom string `json:"retry_from,omitempty"`
	// Permissions are what the run may use; nil for everything, empty for nothing that needs any.
	Permissions []string `json:"permissions,omitzero"`
	// Approval is what a person said of the plan as a whole, who was asked before its first step.
	Approval *Answered `json:"approval,omitempty"`
	// Revision is the number of the last amendment of the plan; 0 for one that is as it was submitted.
	Revision int `json:"revision,omitempty"`
	// Amendments are the last 100 of a run whose plan was submitted for an approval, in the order of their records: what
	// became of each.
	Amendments []Amendment `json:"amendments,omitempty"`
	// Context names the keys of the out-of-band context that came with the plan, never their values.
	Context []ContextKey `json:"context,omitempty"`
	Stats   Stats        `json:"stats"`
	// Blob holds the whole document where it was too large to be kept inline; then Outcome, Plan, Templates, Agents and Steps are
	// empty.
	Blob    *Handle         `json:"blob,omitempty"`
	Outcome *Outcome        `json:"outcome,omitempty"`
	Plan    json.RawMessage `json:"plan,omitempty"`
	// Templates are the plans of the templates that the run calls, by name, as they were when it began; nil for none.
	Templates map[string]json.RawMessage `json:"templates,omitempty"`
	// Agents are digests of the agents that the run may call, by name: of all that the requests of their planners follow
	// from, and what becomes of the answers, but for max_rounds and budget. A retry takes rounds over while they are the
	// same. Nil for none.
	Agents map[string]string `json:"agents,omitempty"`
	Steps  []Step            `json:"steps,omitempty"`

	unknown unknown.Fields // of a newer version: they are written as they were read
}

// ContextKey names one value of out-of-band context.
type ContextKey struct {
	Key string `json:"key"`
	// Step is the one step that was given it; empty: all were.
	Step   string `json:"step,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// Try is one decided attempt of a step, or of an item of one.
type Try struct {
	Attempt int `json:"attempt"`
	// Started and Ended are when it ran on Worker; all are zero where none was heard of it, and the run's owner decided.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Worker  string    `json:"worker,omitempty"`
	// Code says why it failed, ToolCode what the tool called that; empty for a success.
	Code     fault.Code `json:"code,omitempty"`
	ToolCode string     `json:"tool_code,omitempty"`
	// Deliveries is how often it was handed to a worker, where that was more than once.
	Deliveries int `json:"deliveries,omitempty"`
	// Asked is whether it ended with a question of the worker to a person.
	Asked bool `json:"asked,omitempty"`
}

// Step is one step of a Run document.
type Step struct {
	ID       string     `json:"id"`
	Tool     string     `json:"tool"`
	Status   StepStatus `json:"status"`
	Attempts int        `json:"attempts,omitempty"`
	// Ready is when its inputs were there, Started and Ended when its last attempt ran on Worker, Decided when the
	// record that ended it was written.
	Ready   time.Time `json:"ready,omitzero"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Decided time.Time `json:"decided,omitzero"`
	Worker  string    `json:"worker,omitempty"`
	// Tries are its decided attempts, where there was more than one or it asked a person; nil elsewhere. Beyond the first 10,000 tries of a
	// document they are left out.
	Tries []Try `json:"tries,omitempty"`
	// Waiting says, for a step that is not over, what it waits for.
	Waiting string       `json:"waiting,omitempty"`
	Error   *fault.Error `json:"error,omitempty"`
	// Arguments are the resolved arguments. They are recomputed from plan and results on reading, not stored.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Result is the raw JSON returned, left out where the outcome holds it already.
	Result json.RawMessage `json:"result,omitempty"`
	// Bytes is the size of the result.
	Bytes int64 `json:"bytes,omitempty"`
	// Blob holds the result where it was too large to be kept inline and the outcome doesn't hold it.
	Blob *Handle `json:"blob,omitempty"`
	// Text is whether Blob holds plain text, which stands for a JSON string.
	Text bool `json:"text,omitempty"`
	// Type is what kind of object its worker says that it returned, Shown what it says that a planner is shown in its place.
	// Only runs with agents have them.
	Type  string `json:"type,omitempty"`
	Shown string `json:"shown,omitempty"`
	// Reused is whether the result was taken over from the run that this one tries again.
	Reused bool `json:"reused,omitempty"`
	// Discarded is whether an amendment took the step out of the plan.
	Discarded bool `json:"discarded,omitempty"`
	// Revision is the number of the last amendment of the plan that the step has; 0 for one that is as it was written.
	Revision int `json:"revision,omitempty"`
	// Answer is what a person said who was asked before it, or by it.
	Answer *Answered `json:"answer,omitempty"`
	// Answers are what people said whom its worker asked in the middle of a call, in their order.
	Answers []*Answered `json:"answers,omitempty"`
	// Said is what people have said to it, of an agent, in its order: as much as there is room for, the latest first to stay.
	Said []Said `json:"said,omitempty"`
	// Messages are what it has told people, of an agent, in the order of the records: as many as there is room for, the latest first
	// to stay. MessagesLeftOut is how many there was no room for.
	Messages        []Message `json:"messages,omitempty"`
	MessagesLeftOut int       `json:"messages_left_out,omitempty"`
	// Refused are the answers of its planner that came to nothing, of an agent, in the order of their rounds: the latest first to stay.
	Refused []Refused `json:"refused,omitempty"`
	// ToolLogs are the calls that were made, of an agent whose planner answers in commands, in the order of its answers, once the
	// run is over: the latest first to stay. LogsLeftOut is how many there was no room for.
	ToolLogs    []ToolLog `json:"tool_logs,omitempty"`
	LogsLeftOut int       `json:"tool_logs_left_out,omitempty"`
	// List is the SHA-256, in hex, of the list that a for_each step was executed once for each item of, written as a
	// JSON array without white space between its elements: an item's id is a place in it.
	List string `json:"list,omitempty"`
	// RetriedKey is the idempotency key that the call had in the run which this one tries again, or in one before that,
	// where it was not executed in this one.
	RetriedKey string `json:"retried_key,omitempty"`
	// Items are those of a for_each step, in order; the id of the i-th is "S=i".
	Items []Step `json:"items,omitempty"`
	// Steps are those of the plan of a composite, or of an item of one, in its order; the id of each begins with this one's
	// and "/".
	Steps []Step `json:"steps,omitempty"`
}
