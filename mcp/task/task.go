package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

// Extension is the name under which clients and servers say that they know tasks.
const Extension = "io.modelcontextprotocol/tasks"

// Status is where a task stands.
type Status string

// The statuses. The last three are terminal.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Task is what a client is told of a task. Times are those of the ledger.
type Task struct {
	ID             string    `json:"taskId"`
	Status         Status    `json:"status"`
	StatusMessage  string    `json:"statusMessage,omitempty"`
	CreatedAt      time.Time `json:"createdAt"`
	LastUpdatedAt  time.Time `json:"lastUpdatedAt"`
	TTLMs          int64     `json:"ttlMs"`          // from CreatedAt, in milliseconds
	PollIntervalMs int64     `json:"pollIntervalMs"` // 500 to 5,000
	// InputRequests, by key, are what is asked, where Status is InputRequired.
	InputRequests json.RawMessage `json:"inputRequests,omitempty"`
	// Result is that of tools/call, where Status is Completed.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is that of JSON-RPC, where Status is Failed.
	Error json.RawMessage `json:"error,omitempty"`
}

// The bounds of PollIntervalMs.
const (
	leastPoll = 500 * time.Millisecond
	mostPoll  = 5 * time.Second
)

// Of returns what a run's document says of its task, but for what is asked and what came of it: the status of one that
// is over is Completed or Cancelled. retention is how long a finished run is kept.
func Of(doc *outcome.Run, retention time.Duration) Task {
	t := Task{
		Status: Working, StatusMessage: Progress(doc), CreatedAt: doc.Submitted.UTC(), LastUpdatedAt: latest(doc).UTC(),
		TTLMs: retention.Milliseconds(),
	}
	switch doc.Status {
	case outcome.Running:
	case outcome.Cancelled:
		t.Status = Cancelled
	default:
		t.Status = Completed
	}
	if !doc.Finished.IsZero() {
		t.TTLMs = (retention + doc.Finished.Sub(doc.Submitted)).Milliseconds()
	}
	t.PollIntervalMs = Poll(t.LastUpdatedAt.Sub(t.CreatedAt)).Milliseconds()
	return t
}

// Fresh is the task of a run of which nothing is known but when it was submitted.
func Fresh(submitted time.Time, retention time.Duration) Task {
	submitted = submitted.UTC()
	return Task{
		Status: Working, CreatedAt: submitted, LastUpdatedAt: submitted,
		TTLMs: retention.Milliseconds(), PollIntervalMs: leastPoll.Milliseconds(),
	}
}

// Poll returns how long a client should wait before it asks again about a run that is so old.
func Poll(age time.Duration) time.Duration { return min(max(age/10, leastPoll), mostPoll) }

// latest is when a run's document last changed, as far as it says.
func latest(doc *outcome.Run) time.Time {
	last := doc.Submitted
	for _, t := range []time.Time{doc.Started, doc.Finished} {
		if t.After(last) {
			last = t
		}
	}
	for i := range doc.Steps {
		if d := doc.Steps[i].Decided; d.After(last) {
			last = d
		}
	}
	return last
}

// asking returns the steps that wait for a person, with those inside of others.
func asking(steps []outcome.Step) (ids []string) {
	for i := range steps {
		s := &steps[i]
		if inside := append(asking(s.Items), asking(s.Steps)...); len(inside) > 0 {
			ids = append(ids, inside...)
		} else if s.Status == outcome.StepAsking {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// mostNamed is how many waiting steps are named.
const mostNamed = 5

// Progress says how far a run is: "7 of 12 steps, 1 failed", and of agents in which round they are.
func Progress(doc *outcome.Run) string {
	over, failed := 0, 0
	for i := range doc.Steps {
		s := &doc.Steps[i]
		if s.Status.Terminal() {
			over++
		}
		if s.Status == outcome.StepFailed {
			failed++
		}
	}
	waits := asking(doc.Steps)
	if len(doc.Steps) == 0 {
		return ""
	}
	said := fmt.Sprintf("%d of %s", over, text.Count(len(doc.Steps), "step"))
	if failed > 0 {
		said += fmt.Sprintf(", %d failed", failed)
	}
	if all := rounds(doc.Steps, len(doc.Steps) == 1); len(all) > 0 {
		said += ", " + strings.Join(all[:min(len(all), mostNamed)], ", ")
	}
	if len(waits) > mostNamed {
		waits = append(waits[:mostNamed], "…")
	}
	if len(waits) > 0 {
		said += ", waiting for a person: " + strings.Join(waits, ", ")
	}
	return said
}
