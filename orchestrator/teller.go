package orchestrator

import (
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/internal/observer"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// teller tells an observer what the loop does. Where there is none it does nothing, and allocates nothing.
type teller struct{ to *observer.Queue }

func observedRun(id subjects.Run, generation uint64, trace wire.Trace) observe.Run {
	return observe.Run{
		Tenant: id.Tenant, ID: id.Plain(), Generation: generation, Traceparent: trace.Parent, Tracestate: trace.State,
	}
}

func observedAttempt(a *subjects.Attempt, trace wire.Trace) observe.Attempt {
	run := observedRun(a.Run, a.Generation, trace.Of(*a))
	return observe.Attempt{Run: run, Step: a.Step, Tool: a.Tool, Number: a.Number}
}

// logOf returns the log of what concerns an attempt of a run with a trace.
func logOf(log *slog.Logger, a *subjects.Attempt, trace wire.Trace) *slog.Logger {
	log = log.With("tenant", a.Tenant, "run", a.Plain(), "step", a.Step, "tool", a.Tool, "attempt", a.Number)
	if id := trace.SampledID(); id != "" {
		log = log.With("trace_id", id)
	}
	return log
}

// open tells of a run that this owner begins with.
func (t teller) open(r *run) {
	if t.to == nil {
		return
	}
	e := observe.Open{
		Run: observedRun(r.id, r.generation, r.trace), Steps: len(r.plan.Steps), Resumed: r.recovered,
		Submitted: r.submitted, Started: r.machine.Started(),
	}
	t.to.Tell(observer.Event, func(o observe.Observer) { o.OnOpen(e) })
}

// dispatch returns done, and has it tell before what became of an attempt that is sent.
func (t teller) dispatch(s *sending, done func(error)) func(error) {
	if t.to == nil {
		return done
	}
	e := observe.Dispatch{
		Attempt: observedAttempt(&s.attempt, s.step.Trace), Bytes: int64(len(s.dispatch.Body)),
		Due: s.dispatch.At, Repair: s.dispatch.Repair,
	}
	if s.step.Handle != nil {
		e.Bytes = s.step.Handle.Size
	}
	return func(err error) {
		e.Sent, e.Err = time.Now(), err
		t.to.Tell(observer.Event, func(o observe.Observer) { o.OnDispatch(e) })
		done(err)
	}
}

// record tells of a record that the machine has taken, unless it lay there before this owner came.
func (t teller) record(r *run, rec *machine.Record, now time.Time) {
	if t.to == nil || rec.Result == nil || rec.Seq <= r.replayed {
		return
	}
	x, a := rec.Result, r.attempt(rec.Result.Call, rec.Result.Attempt)
	e := observe.Record{
		Attempt: observedAttempt(&a, r.trace), Worker: x.Worker, ByOwner: x.ByOwner, Ready: r.machine.Step(x.Call, now).Ready,
		Started: x.Started, Ended: x.Ended, Recorded: rec.Time, Bytes: x.Size, Err: x.Error,
		Again: r.machine.Wanted(x.Call, x.Attempt+1), Asked: x.Asks != nil,
	}
	if e.Err != nil && !e.Again {
		why, _ := died(r, x.Call)
		e.DeadLetter = why != nil
	}
	t.to.Tell(observer.Event, func(o observe.Observer) { o.OnRecord(e) })
}

// finish tells of a run whose document this owner has written.
func (t teller) finish(r *run, doc *outcome.Run) {
	if t.to == nil {
		return
	}
	steps := 1 + len(doc.Steps)
	for i := range doc.Steps {
		steps += len(doc.Steps[i].Items)
	}
	e := observe.Finish{Run: observedRun(r.id, r.generation, r.trace), Status: doc.Status, Document: withoutValues(doc)}
	t.to.Tell(int64(steps)*observer.Event, func(o observe.Observer) { o.OnFinish(e) })
}

// sink tells of an object that went to a sink, or could not.
func (t teller) sink(e *observe.Sink) {
	if t.to != nil {
		t.to.Tell(observer.Event, func(o observe.Observer) { o.OnSink(*e) })
	}
}

// withoutValues returns a copy of a run's document that has nothing of plan, arguments and results, and so keeps none
// of them in memory.
func withoutValues(doc *outcome.Run) *outcome.Run {
	short := *doc
	short.Plan, short.Templates = nil, nil
	if doc.Outcome != nil {
		o := *doc.Outcome
		o.Results, o.Output = nil, nil
		short.Outcome = &o
	}
	short.Steps = stepsWithoutValues(doc.Steps)
	return &short
}

func stepsWithoutValues(steps []outcome.Step) []outcome.Step {
	short := make([]outcome.Step, len(steps))
	for i := range steps {
		short[i] = steps[i]
		short[i].Arguments, short[i].Result = nil, nil
		short[i].Items = stepsWithoutValues(steps[i].Items)
		if steps[i].Steps != nil {
			short[i].Steps = stepsWithoutValues(steps[i].Steps)
		}
	}
	return short
}
