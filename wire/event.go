package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Events are for whoever watches a run: at most once, and nothing rests on them. The end of a run is told by its
// outcome.

// StartEvent tells that a run has begun.
type StartEvent struct {
	Run   string    `json:"run"` // plain id, as in all of these
	Steps int       `json:"steps"`
	Time  time.Time `json:"time"`
}

// StepEvent tells that a step, or an item of one, was decided or is to be tried again.
type StepEvent struct {
	Run     string             `json:"run"`
	Step    string             `json:"step"` // "S", or "S=i" for an item
	Tool    string             `json:"tool"`
	Status  outcome.StepStatus `json:"status"`
	Attempt int                `json:"attempt,omitempty"` // that was decided, from 1; 0: none
	Time    time.Time          `json:"time"`
	// MS is how long the last attempt executed, as its worker measured it, and QueuedMS all the rest of the time from
	// ready to decided, pauses between attempts and earlier attempts included; in milliseconds, 0 where it isn't known.
	MS       float64      `json:"ms,omitempty"`
	QueuedMS float64      `json:"queued_ms,omitempty"`
	Worker   string       `json:"worker,omitempty"`
	Error    *fault.Error `json:"error,omitempty"`
	RetryAt  *time.Time   `json:"retry_at,omitempty"` // when the next attempt is due
}

// ProgressEvent tells how far a step is that a worker has.
type ProgressEvent struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	Tool    string `json:"tool"`
	Attempt int    `json:"attempt"`
	outcome.Progress
}

// MessageEvent tells what an agent tells people, once the record of its call stands.
type MessageEvent struct {
	Run   string `json:"run"`
	Agent string `json:"agent"` // the step that calls it
	outcome.Message
}

// TokenEvent tells what the handler of a step is writing.
type TokenEvent struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	Tool    string `json:"tool"`
	Attempt int    `json:"attempt"`
	Token
}

// QuestionEvent tells that a run waits for a person. What is asked stands in the bucket "questions".
type QuestionEvent struct {
	Run    string               `json:"run"`
	Step   string               `json:"step"` // "=" for the plan itself
	Number int                  `json:"number"`
	Kind   outcome.QuestionKind `json:"kind"`
	Text   string               `json:"text,omitempty"`
	Digest string               `json:"digest"`
	// Revision is that of the amendment which is asked about; 0 where it is the step or the plan itself.
	Revision int `json:"revision,omitempty"`
	// Round is that of the agent's round which is asked about; nil where it is none.
	Round *int       `json:"round,omitempty"`
	Time  time.Time  `json:"time"` // when it was asked
	Until *time.Time `json:"until,omitempty"`
}

// AmendEvent tells that an amendment is in force.
type AmendEvent struct {
	Run      string    `json:"run"`
	Step     string    `json:"step"` // whose plan it is, "=" for that of the run
	Revision int       `json:"revision"`
	Steps    int       `json:"steps"` // that the plan has now
	By       string    `json:"by,omitempty"`
	Time     time.Time `json:"time"` // when it was recorded
}

// ConflictEvent tells that another plan was sent under the id of a run.
type ConflictEvent struct {
	Run      string          `json:"run"`
	Problems []fault.Problem `json:"problems"`
}

// StepEventOf returns the event of a step that is over, from the account of it: the same while the run goes on and
// later, from its document. A for_each step has no attempt of its own; its items have.
func StepEventOf(run string, s *outcome.Step, isList bool) StepEvent {
	e := StepEvent{
		Run: run, Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: s.Attempts, Time: s.Decided, Worker: s.Worker, Error: s.Error,
	}
	e.QueuedMS, e.MS = s.TookMS()
	if isList {
		e.Attempt = 0
	}
	return e
}

// Body writes the event. It does so by hand, since every run has one.
func (e StartEvent) Body() []byte {
	b := append(make([]byte, 0, 128), `{"run":`...)
	b = appendJSON(b, e.Run)
	b = append(b, `,"steps":`...)
	b = strconv.AppendInt(b, int64(e.Steps), 10)
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	return append(b, `"}`...)
}

// Body writes the event. That of a success is written by hand, since every step has one.
func (e StepEvent) Body() []byte {
	if e.Error != nil || e.RetryAt != nil {
		return plainEvent(e)
	}
	b := make([]byte, 0, 256)
	b = append(b, `{"run":`...)
	b = appendJSON(b, e.Run)
	b = append(b, `,"step":"`...) // ids, tools and statuses need no escaping
	b = append(b, e.Step...)
	b = append(b, `","tool":"`...)
	b = append(b, e.Tool...)
	b = append(b, `","status":"`...)
	b = append(b, e.Status...)
	b = append(b, '"')
	if e.Attempt > 0 {
		b = append(b, `,"attempt":`...)
		b = strconv.AppendInt(b, int64(e.Attempt), 10)
	}
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if e.MS > 0 {
		b = append(b, `,"ms":`...)
		b = strconv.AppendFloat(b, e.MS, 'f', -1, 64)
	}
	if e.QueuedMS > 0 {
		b = append(b, `,"queued_ms":`...)
		b = strconv.AppendFloat(b, e.QueuedMS, 'f', -1, 64)
	}
	if e.Worker != "" {
		b = append(b, `,"worker":`...)
		b = appendJSON(b, e.Worker)
	}
	return append(b, '}')
}

// Body writes the event.
func (e ProgressEvent) Body() []byte { return plainEvent(e) }

// Body writes the event.
func (e MessageEvent) Body() []byte { return plainEvent(e) }

// Body writes the event.
func (e TokenEvent) Body() []byte { return plainEvent(e) }

// Body writes the event.
func (e QuestionEvent) Body() []byte { return plainEvent(e) }

// Body writes the event.
func (e AmendEvent) Body() []byte { return plainEvent(e) }

// Body writes the event.
func (e ConflictEvent) Body() []byte { return plainEvent(e) }

// plainEvent is nil, which nobody can read, for an error whose details are no JSON: events may be lost.
func plainEvent(e any) []byte {
	b, _ := json.Marshal(e)
	return b
}

// ParseEvent reads an event into its form, StartEvent, StepEvent, ProgressEvent, MessageEvent, TokenEvent, QuestionEvent, AmendEvent or
// ConflictEvent; ok is false for what is none.
func ParseEvent[E StartEvent | StepEvent | ProgressEvent | MessageEvent | TokenEvent | QuestionEvent | AmendEvent | ConflictEvent](body []byte) (e E, ok bool) {
	if json.Unmarshal(body, &e) != nil {
		var none E
		return none, false
	}
	return e, true
}
