package orchestrator

import (
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
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

// start announces a run.
func (a *announcer) start(r *run) {
	a.tell(r, subjects.Event(r.id, subjects.EventStart), func() []byte {
		return wire.StartEvent{Run: r.id.Plain(), Steps: len(r.plan.Steps), Time: r.machine.Started()}.Body()
	})
}

func (a *announcer) step(r *run, c machine.Call) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return stepEvent(r, c).Body() })
}

// stepEvent says that a call was decided.
func stepEvent(r *run, c machine.Call) wire.StepEvent {
	s := r.machine.Step(c, time.Time{})
	_, isList := r.machine.Items(c.Step)
	return wire.StepEventOf(r.id.Plain(), &s, isList && c.Item == 0)
}

func (a *announcer) retry(r *run, d machine.Dispatch) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return retryEvent(r, d).Body() })
}

func retryEvent(r *run, d machine.Dispatch) wire.StepEvent {
	s := r.machine.Step(d.Call, time.Time{})
	e := wire.StepEvent{
		Run: r.id.Plain(), Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: d.Attempt - 1, Time: r.machine.LastTime(), Worker: s.Worker, Error: s.Error,
	}
	if !d.At.IsZero() {
		e.RetryAt = &d.At
	}
	return e
}

// conflictProblem says that a run id belongs to another plan.
func conflictProblem(id subjects.Run, before, now string) fault.Problem {
	return fault.Problem{
		Code: fault.Conflict, Path: "",
		Message: "the run id '" + id.Plain() + "' was used for another plan (sha256 " + before[:min(12, len(before))] + "…, not " + now[:min(12, len(now))] + "…)",
		Hint:    "send the same bytes to get the same outcome, or choose another run id",
	}
}

// conflict tells watchers, and the client that sent the other plan. The stored outcome stays.
func (a *announcer) conflict(id subjects.Run, client, before, now string) {
	problem := conflictProblem(id, before, now)
	a.publish(subjects.Event(id, subjects.EventConflict), wire.ConflictEvent{Run: id.Plain(), Problems: []fault.Problem{problem}}.Body())
	if client != "" {
		o := outcome.Outcome{Run: id.Plain(), Status: outcome.Rejected, Problems: []fault.Problem{problem}}
		a.publish(subjects.Notify(id, client), o.JSON())
	}
}
