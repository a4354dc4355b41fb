package orchestrator

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// publish sends an event.
func (a *announcer) publish(subject string, body []byte) {
	a.sent(subject, a.bus.Publish(subject, body))
}

func (a *announcer) sent(subject string, err error) {
	if err != nil && a.ctx.Err() == nil {
		a.log.Debug("an event was not sent", "subject", subject, "error", err)
	}
}

type startEvent struct {
	Run   string    `json:"run"`
	Steps int       `json:"steps"`
	Time  time.Time `json:"time"`
}

// start announces a run. It writes a startEvent by hand, since every run has one.
func (a *announcer) start(r *run) {
	a.tell(r, subjects.Event(r.id, subjects.EventStart), func() []byte {
		b := append(make([]byte, 0, 128), `{"run":`...)
		b = appendJSON(b, r.id.Plain())
		b = append(b, `,"steps":`...)
		b = strconv.AppendInt(b, int64(len(r.plan.Steps)), 10)
		b = append(b, `,"time":"`...)
		b = r.machine.Started().AppendFormat(b, time.RFC3339Nano)
		return append(b, `"}`...)
	})
}

// stepEvent tells that a step was decided, or is to be tried again.
type stepEvent struct {
	Run     string             `json:"run"`
	Step    string             `json:"step"`
	Tool    string             `json:"tool"`
	Status  outcome.StepStatus `json:"status"`
	Attempt int                `json:"attempt,omitempty"`
	Time    time.Time          `json:"time"`
	MS      float64            `json:"ms,omitempty"`        // of the execution
	Queued  float64            `json:"queued_ms,omitempty"` // the rest of the time from ready to decided
	Worker  string             `json:"worker,omitempty"`
	Error   *fault.Error       `json:"error,omitempty"`
	RetryAt *time.Time         `json:"retry_at,omitempty"`
}

func (a *announcer) step(r *run, c machine.Call) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return a.stepEvent(r, c) })
}

// stepEvent writes a stepEvent by hand, since every step has one.
func (a *announcer) stepEvent(r *run, c machine.Call) []byte {
	s := r.machine.Step(c, time.Time{})
	queued, ran := s.TookMS()
	if _, isList := r.machine.Items(c.Step); isList && c.Item == 0 {
		s.Attempts = 0 // its items have attempts, it has none of its own
	}
	if s.Error != nil {
		b, _ := json.Marshal(stepEvent{
			Run: r.id.Plain(), Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: s.Attempts, Time: s.Decided,
			MS: ran, Queued: queued, Worker: s.Worker, Error: s.Error,
		})
		return b
	}
	b := make([]byte, 0, 256)
	b = append(b, `{"run":`...)
	b = appendJSON(b, r.id.Plain())
	b = append(b, `,"step":"`...) // ids, tools and statuses need no escaping
	b = append(b, s.ID...)
	b = append(b, `","tool":"`...)
	b = append(b, s.Tool...)
	b = append(b, `","status":"`...)
	b = append(b, s.Status...)
	b = append(b, '"')
	if s.Attempts > 0 {
		b = append(b, `,"attempt":`...)
		b = strconv.AppendInt(b, int64(s.Attempts), 10)
	}
	b = append(b, `,"time":"`...)
	b = s.Decided.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if ran > 0 {
		b = append(b, `,"ms":`...)
		b = strconv.AppendFloat(b, ran, 'f', -1, 64)
	}
	if queued > 0 {
		b = append(b, `,"queued_ms":`...)
		b = strconv.AppendFloat(b, queued, 'f', -1, 64)
	}
	if s.Worker != "" {
		b = append(b, `,"worker":`...)
		b = appendJSON(b, s.Worker)
	}
	return append(b, '}')
}

// appendJSON writes a string as JSON.
func appendJSON(b []byte, s string) []byte {
	if subjects.Encode(s) == s { // nothing in it needs quoting
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, _ := json.Marshal(s) // strings can't fail
	return append(b, quoted...)
}

func (a *announcer) retry(r *run, d machine.Dispatch) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return a.retryEvent(r, d) })
}

func (a *announcer) retryEvent(r *run, d machine.Dispatch) []byte {
	s := r.machine.Step(d.Call, time.Time{})
	e := stepEvent{
		Run: r.id.Plain(), Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: d.Attempt - 1, Time: r.machine.LastTime(), Worker: s.Worker, Error: s.Error,
	}
	if !d.At.IsZero() {
		e.RetryAt = &d.At
	}
	b, _ := json.Marshal(e)
	return b
}

// conflictProblem says that a run id belongs to another plan.
func conflictProblem(id subjects.Run, before, now string) fault.Problem {
	return fault.Problem{
		Code: fault.Conflict, Path: "",
		Message: "the run id '" + id.Plain() + "' was used for another plan (sha256 " + before[:min(12, len(before))] + "…, not " + now[:min(12, len(now))] + "…)",
		Hint:    "send the same bytes to get the same outcome, or choose another run id",
	}
}

type conflictEvent struct {
	Run      string          `json:"run"`
	Problems []fault.Problem `json:"problems"`
}

// conflict tells watchers, and the client that sent the other plan. The stored outcome stays.
func (a *announcer) conflict(id subjects.Run, client, before, now string) {
	problem := conflictProblem(id, before, now)
	b, _ := json.Marshal(conflictEvent{id.Plain(), []fault.Problem{problem}})
	a.publish(subjects.Event(id, subjects.EventConflict), b)
	if client != "" {
		o := outcome.Outcome{Run: id.Plain(), Status: outcome.Rejected, Problems: []fault.Problem{problem}}
		a.publish(subjects.Notify(id, client), o.JSON())
	}
}
