package client

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// EventLeftAlone is the kind of an event that no orchestrator sends: the owner of the run is older than what was written of it and
// leaves it alone, Error says so. It goes on once a newer one owns it.
const EventLeftAlone = "left_alone"

// Event is something that happened to a run.
type Event struct {
	// Kind is one of subjects.EventStart, EventStep, EventProgress, EventMessage, EventToken, EventQuestion, EventAmend, EventEnd and
	// EventConflict, or EventLeftAlone; it says which fields are set.
	Kind string    `json:"kind"`
	Run  string    `json:"run"`
	Time time.Time `json:"time,omitzero"`
	// Steps is, of a start, the number of steps of the plan; of an amendment that of the plan which was amended, 0 where
	// it is told later.
	Steps int `json:"steps,omitempty"`
	// Revision is, of an amendment, or of a question about one, its number, from 1; Step names the step whose plan it is,
	// "=" for that of the run. By says who asked for it, as they name themselves.
	Revision int    `json:"revision,omitempty"`
	By       string `json:"by,omitempty"`
	// Round is, of a question about a round of an agent, its number, from 0; Step names the step that calls the agent.
	Round *int `json:"round,omitempty"`
	// Step, Tool and Status say, of a step, which one came to what. Step is "S=i" for an item of a for_each. Status is
	// terminal, or StepRetrying; or, of a step that is not over when the run is looked at, StepReady or StepRunning,
	// which a watcher tells when it changes.
	Step   string             `json:"step,omitempty"`
	Tool   string             `json:"tool,omitempty"`
	Status outcome.StepStatus `json:"status,omitempty"`
	// Attempt is the attempt that was decided, from 1; 0 for a step that never ran, and for a for_each step as a whole.
	Attempt int `json:"attempt,omitempty"`
	// MS is how long the attempt executed, QueuedMS the rest of the time from ready to decided, in milliseconds; 0
	// where it isn't known.
	MS       float64 `json:"ms,omitempty"`
	QueuedMS float64 `json:"queued_ms,omitempty"`
	// Progress is, of an event of that kind, what the worker of a step says of how far it is; Step, Tool and Attempt name
	// what it is about.
	Progress *outcome.Progress `json:"progress,omitempty"`
	// Message is, of an event of that kind, what an agent tells people, and stays: the document of the run has it, too. Agent is the
	// step that calls the agent, Step the call by which it tells it.
	Message *outcome.Message `json:"message,omitempty"`
	Agent   string           `json:"agent,omitempty"`
	// Text is, of a token, what has come of what the handler of a step is writing, as a language model writes its answer, and
	// Offset how many bytes came before; Step, Tool and Attempt name the step. Some may be missing: the step's result is what
	// counts.
	Text   string `json:"text,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	// Worker is who executed the attempt.
	Worker string `json:"worker,omitempty"`
	// Waiting says what a step that is not over waits for: a worker, the tool's limit, the end of a backoff, a person;
	// of a question, its text.
	Waiting string       `json:"waiting,omitempty"`
	Error   *fault.Error `json:"error,omitempty"`
	// RetryAt is when the next attempt is due.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Outcome is, of an end, all that the run came to.
	Outcome *outcome.Outcome `json:"outcome,omitempty"`
	// Problems say, of a conflict, what is wrong with the plan that was sent under this run's id.
	Problems []fault.Problem `json:"problems,omitempty"`
}

// parseEvent reads an event; ok is false for what is none, or of a kind that a newer Stepjet sends. The end of a large
// run comes without results: then Outcome is nil.
func parseEvent(subject string, body []byte) (e Event, ok bool) {
	run, kind, ok := subjects.ParseEvent(subject)
	if !ok {
		return e, false
	}
	switch kind {
	case subjects.EventEnd:
		e.Outcome, _ = parseOutcome(body)
	case subjects.EventStart:
		var x wire.StartEvent
		x, ok = wire.ParseEvent[wire.StartEvent](body)
		e.Steps, e.Time = x.Steps, x.Time
	case subjects.EventStep:
		var x wire.StepEvent
		x, ok = wire.ParseEvent[wire.StepEvent](body)
		e = stepEvent(x)
	case subjects.EventProgress:
		var x wire.ProgressEvent
		x, ok = wire.ParseEvent[wire.ProgressEvent](body)
		e.Step, e.Tool, e.Attempt, e.Progress = x.Step, x.Tool, x.Attempt, &x.Progress
	case subjects.EventMessage:
		var x wire.MessageEvent
		x, ok = wire.ParseEvent[wire.MessageEvent](body)
		e = messageEvent(x.Run, x.Agent, &x.Message)
	case subjects.EventToken:
		var x wire.TokenEvent
		x, ok = wire.ParseEvent[wire.TokenEvent](body)
		e.Step, e.Tool, e.Attempt, e.Text, e.Offset = x.Step, x.Tool, x.Attempt, x.Text, x.At
	case subjects.EventQuestion:
		var x wire.QuestionEvent
		x, ok = wire.ParseEvent[wire.QuestionEvent](body)
		e.Time, e.Step, e.Status, e.Waiting, e.Revision, e.Round = x.Time, x.Step, outcome.StepAsking, x.Text, x.Revision, x.Round
	case subjects.EventAmend:
		var x wire.AmendEvent
		x, ok = wire.ParseEvent[wire.AmendEvent](body)
		e.Time, e.Step, e.Revision, e.Steps, e.By = x.Time, x.Step, x.Revision, x.Steps, x.By
	case subjects.EventConflict:
		var x wire.ConflictEvent
		x, ok = wire.ParseEvent[wire.ConflictEvent](body)
		e.Problems = x.Problems
	default:
		return e, false
	}
	if !ok {
		return Event{}, false
	}
	e.Kind, e.Run = kind, run.Plain()
	return e, true
}

// messageEvent hands on what an agent tells people.
func messageEvent(run, agent string, m *outcome.Message) Event {
	return Event{Kind: subjects.EventMessage, Run: run, Time: m.At, Step: m.Step, Agent: agent, Message: m}
}

// stepEvent hands on what an event says, or a document holds, about a step that is over or waits for its next attempt.
func stepEvent(x wire.StepEvent) Event {
	e := Event{
		Kind: subjects.EventStep, Run: x.Run, Time: x.Time, Step: x.Step, Tool: x.Tool, Status: x.Status,
		Attempt: x.Attempt, MS: x.MS, QueuedMS: x.QueuedMS, Worker: x.Worker, Error: x.Error,
	}
	if x.RetryAt != nil {
		e.RetryAt = *x.RetryAt
	}
	return e
}
