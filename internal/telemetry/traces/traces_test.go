package traces_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/cost"
	"github.com/stepjet/stepjet/internal/telemetry/traces"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

// kept is a traceparent whose trace is kept; its span is the caller's.
const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	caller  = "b7ad6b7169203331"
	kept    = "00-" + traceID + "-" + caller + "-01"
	left    = "00-" + traceID + "-" + caller + "-00"
)

// made returns the spans of what tell tells, by name.
func made(t *testing.T, tell func(*traces.Traces)) map[string][]tracetest.SpanStub {
	t.Helper()
	to := &keeping{tracetest.NewInMemoryExporter()}
	all := traces.New(to)
	tell(all)
	require.NoError(t, all.Close(context.Background()))
	by := map[string][]tracetest.SpanStub{}
	for _, s := range to.GetSpans() {
		require.Equal(t, traceID, s.SpanContext.TraceID().String())
		by[s.Name] = append(by[s.Name], s)
	}
	return by
}

// keeping is an exporter in memory that its end does not empty.
type keeping struct{ *tracetest.InMemoryExporter }

func (*keeping) Shutdown(context.Context) error { return nil }

func about(s *tracetest.SpanStub) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func attempt(step, tool string, number int) subjects.Attempt {
	return subjects.Attempt{Run: subjects.NewRun("acme", "r 1"), Generation: 7, Step: step, Tool: tool, Number: number}
}

func span(n uint64) string { return fmt.Sprintf("%016x", n) }

func ofRun(parent string) observe.Run {
	return observe.Run{Tenant: "acme", ID: "r 1", Generation: 7, Traceparent: parent}
}

// finished is a run of a step that succeeded, one that did at its second attempt, and a for_each of two items of which
// one failed.
func finished(parent string) observe.Finish {
	item := func(i int, err *fault.Error) outcome.Step {
		return outcome.Step{
			ID: fmt.Sprint("m=", i), Tool: "map", Attempts: 1, Ready: at(50), Started: at(60), Ended: at(70), Decided: at(71), Error: err,
		}
	}
	return observe.Finish{
		Run: ofRun(parent), Status: outcome.Failed,
		Document: &outcome.Run{Submitted: t0, Started: at(1), Finished: at(100), Steps: []outcome.Step{
			{ID: "a", Tool: "get", Attempts: 1, Ready: at(1), Started: at(11), Ended: at(20), Decided: at(21)},
			{
				ID: "b", Tool: "put", Attempts: 2, Ready: at(21), Started: at(40), Ended: at(45), Decided: at(46),
				Tries: []outcome.Try{{Attempt: 1, Started: at(22), Ended: at(30), Code: fault.ToolFailed}, {Attempt: 2, Started: at(40), Ended: at(45)}},
			},
			{ID: "m", Tool: "map", Ready: at(50), Items: []outcome.Step{item(0, nil), item(1, fault.New(fault.Timeout, "secret"))}},
			{ID: "skipped", Tool: "get", Status: outcome.StepSkipped},
			{ID: "reused", Tool: "get", Attempts: 1, Ready: at(1), Decided: at(1), Reused: true},
		}},
	}
}

func TestTheSpansOfARun(t *testing.T) {
	t.Parallel()
	by := made(t, func(to *traces.Traces) { to.OnFinish(finished(kept)) })
	require.Len(t, by, 4)
	run := by["invoke_workflow"][0]
	require.Equal(t, caller, run.Parent.SpanID().String())
	require.Equal(t, span(subjects.NewRun("acme", "r 1").Span(7)), run.SpanContext.SpanID().String())
	require.Equal(t, []time.Time{t0, at(100)}, []time.Time{run.StartTime, run.EndTime})
	require.Equal(t, codes.Error, run.Status.Code)
	require.Equal(t, map[string]string{
		"stepjet.run": "r 1", "stepjet.tenant": "acme", "stepjet.status": "failed", "error.type": "failed",
		"gen_ai.operation.name": "invoke_workflow",
	}, about(&run))

	get := by["step get"]
	require.Len(t, get, 1, "neither of what was skipped nor of what another run did")
	require.Equal(t, span(attempt("a", "get", 1).Span()), get[0].SpanContext.SpanID().String())
	require.Equal(t, run.SpanContext.SpanID(), get[0].Parent.SpanID())
	require.Equal(t, trace.SpanKindProducer, get[0].SpanKind)
	require.Equal(t, []time.Time{at(1), at(21)}, []time.Time{get[0].StartTime, get[0].EndTime})
	require.Equal(t, "10", about(&get[0])["stepjet.wait_ms"])

	put := by["step put"]
	require.Len(t, put, 2)
	require.Equal(t, span(attempt("b", "put", 1).Span()), put[0].SpanContext.SpanID().String(), "what failed comes first")
	require.Equal(t, "tool_failed", about(&put[0])["error.type"])
	require.Equal(t, []time.Time{at(21), at(30), at(30), at(46)}, []time.Time{put[0].StartTime, put[0].EndTime, put[1].StartTime, put[1].EndTime})
	require.Equal(t, codes.Unset, put[1].Status.Code)

	items := by["step map"]
	require.Len(t, items, 2)
	require.Equal(t, span(attempt("m=1", "map", 1).Span()), items[0].SpanContext.SpanID().String())
	for _, all := range by {
		for i := range all {
			require.NotContains(t, fmt.Sprint(all[i]), "secret", "messages are nobody's business")
		}
	}
}

// TestTheSpansOfWhatStandsInASubPlan: a worker's spans have a parent there too.
func TestTheSpansOfWhatStandsInASubPlan(t *testing.T) {
	t.Parallel()
	e := finished(kept)
	inner := outcome.Step{ID: "s/in", Tool: "inner", Attempts: 1, Ready: at(1), Decided: at(2)}
	each := outcome.Step{ID: "m=0/in", Tool: "inner", Attempts: 1, Ready: at(1), Decided: at(2)}
	e.Document.Steps = []outcome.Step{
		{ID: "s", Steps: []outcome.Step{inner}}, {ID: "m", Items: []outcome.Step{{ID: "m=0", Steps: []outcome.Step{each}}}},
	}
	var ids []string
	for _, s := range made(t, func(to *traces.Traces) { to.OnFinish(e) })["step inner"] {
		ids = append(ids, s.SpanContext.SpanID().String())
	}
	require.ElementsMatch(t, []string{span(attempt("s/in", "inner", 1).Span()), span(attempt("m=0/in", "inner", 1).Span())}, ids)
}

// A run that came without a trace, and is traced all the same, begins its trace.
func TestARunsOwnTraceBeginsWithIt(t *testing.T) {
	t.Parallel()
	r := subjects.NewRun("acme", "r 1")
	to := &keeping{tracetest.NewInMemoryExporter()}
	all := traces.New(to)
	all.OnFinish(finished(wire.TraceOfRun(r, 7, 1).Parent))
	require.NoError(t, all.Close(context.Background()))
	for _, s := range to.GetSpans() {
		require.Equal(t, trace.TraceID(r.Trace(7)), s.SpanContext.TraceID())
		require.Equal(t, s.Name == "invoke_workflow", !s.Parent.SpanID().IsValid())
	}
}

func TestTheSpansOfAWorker(t *testing.T) {
	t.Parallel()
	e := observe.Execute{
		Attempt: observe.Attempt{Run: ofRun(kept), Step: "a", Tool: "get", Number: 1}, Worker: "w", Delivery: 2,
		Delivered: at(10), Began: at(11), Ended: at(20), Err: fault.New(fault.Timeout, "x"),
	}
	by := made(t, func(to *traces.Traces) {
		to.OnExecute(e)
		e.Began = time.Time{}
		e.Left, e.Err = true, nil
		to.OnExecute(e)
	})
	process, execute := by["process step.get"], by["execute_tool get"]
	require.Len(t, process, 2)
	require.Len(t, execute, 1, "the tool was called once")
	require.Equal(t, caller, process[0].Parent.SpanID().String(), "the attempt's own span")
	require.Equal(t, process[0].SpanContext.SpanID(), execute[0].Parent.SpanID())
	require.Equal(t, trace.SpanKindConsumer, process[0].SpanKind)
	require.Equal(t, "timeout", about(&execute[0])["error.type"])
	require.Equal(t, "true", about(&process[1])["stepjet.left"])
}

func TestTheSpanOfASubmission(t *testing.T) {
	t.Parallel()
	by := made(t, func(to *traces.Traces) {
		to.OnSubmit(observe.Submit{Run: ofRun(kept), Began: t0, Ended: at(-3), Err: context.DeadlineExceeded})
	})
	s := by["send plan.submit"][0]
	require.Equal(t, caller, s.Parent.SpanID().String())
	require.Equal(t, t0, s.EndTime, "no span ends before it began")
	require.Equal(t, codes.Error, s.Status.Code)
}

// What is not kept costs nothing to tell, and what can't be read is not kept.
func TestNothingIsMadeOfWhatIsNotKept(t *testing.T) {
	t.Parallel()
	for _, parent := range []string{"", left, "x", kept[:54], "ff" + kept[2:]} {
		require.Empty(t, made(t, func(to *traces.Traces) {
			to.OnFinish(finished(parent))
			to.OnSubmit(observe.Submit{Run: ofRun(parent)})
			to.OnExecute(observe.Execute{Attempt: observe.Attempt{Run: ofRun(parent)}, Began: t0})
		}), parent)
	}
	rejected := finished(kept)
	rejected.Document.Started = time.Time{}
	require.Empty(t, made(t, func(to *traces.Traces) { to.OnFinish(rejected) }))
}

// percent is a hundredth of the least processor time that a step was ever measured to take, all processes taken together:
// 59 µs, of a fan-out (docs/performance.md).
const percent = 590 * time.Nanosecond

// TestWhatIsNotKeptCostsLessThanAPercentOfAStep: an exporter is there, and nobody keeps the trace that came with the plan.
func TestWhatIsNotKeptCostsLessThanAPercentOfAStep(t *testing.T) {
	to := traces.New(&keeping{tracetest.NewInMemoryExporter()})
	defer func() { require.NoError(t, to.Close(context.Background())) }()
	run, step := finished(left), observe.Execute{Attempt: observe.Attempt{Run: ofRun(left)}, Began: t0}
	tell := func() { to.OnFinish(run); to.OnExecute(step) }
	require.Zero(t, testing.AllocsPerRun(100, tell))
	each := cost.Each(100_000, tell)
	t.Logf("%v a step", each)
	require.Less(t, each, percent)
}

// Of a run of 10,000 steps those are shown that failed, and so many others.
func TestAHugeRunShowsWhatFailed(t *testing.T) {
	t.Parallel()
	e := finished(kept)
	for i := range 10_000 {
		s := outcome.Step{ID: fmt.Sprint("s", i), Tool: "many", Attempts: 1, Ready: at(1), Decided: at(2)}
		if i >= 9_990 {
			s.Error = fault.New(fault.WorkerLost, "x")
		}
		e.Document.Steps = append(e.Document.Steps, s)
	}
	by := made(t, func(to *traces.Traces) { to.OnFinish(e) })
	all, lost := 0, 0
	for name, spans := range by {
		if name == "invoke_workflow" {
			require.Equal(t, "9005", about(&spans[0])["stepjet.attempts_left_out"])
			continue
		}
		all += len(spans)
		for i := range spans {
			if about(&spans[i])["error.type"] == "worker_lost" {
				lost++
			}
		}
	}
	require.Equal(t, 1000, all)
	require.Equal(t, 10, lost)
}

// TestAPersonIsWaitedForInNoSpan: an attempt that asks ends with its question, and the next begins with the answer.
func TestAPersonIsWaitedForInNoSpan(t *testing.T) {
	t.Parallel()
	answers := []*outcome.Answered{{Decision: outcome.DecisionAnswered, At: at(5000)}, {Decision: outcome.DecisionRejected, At: at(9000)}}
	asked := []outcome.Try{{Attempt: 1, Started: at(12), Ended: at(20), Asked: true}, {Attempt: 2, Started: at(5002), Ended: at(5010), Asked: true}}
	e := finished(kept)
	e.Document.Steps = []outcome.Step{
		{ID: "a", Tool: "told", Attempts: 2, Ready: at(10), Started: at(5002), Ended: at(5010), Decided: at(5011), Answers: answers[:1],
			Tries: []outcome.Try{asked[0], {Attempt: 2, Started: at(5002), Ended: at(5010)}}},
		{ID: "b", Tool: "refused", Attempts: 2, Ready: at(10), Decided: at(9001), Answers: answers, Tries: asked, Error: fault.New(fault.Rejected, "no")},
		{ID: "c", Tool: "short", Attempts: 2, Ready: at(10), Started: at(5002), Ended: at(5010), Decided: at(5011), Answers: answers[:1]},
	}
	by := made(t, func(to *traces.Traces) { to.OnFinish(e) })
	of := func(tool string, i int) []time.Time {
		return []time.Time{by["step "+tool][i].StartTime, by["step "+tool][i].EndTime}
	}
	require.Equal(t, []time.Time{at(10), at(20)}, of("told", 0))
	require.Equal(t, "true", about(&by["step told"][0])["stepjet.asked"])
	require.Equal(t, []time.Time{at(5000), at(5011)}, of("told", 1))
	require.NotContains(t, about(&by["step told"][1]), "stepjet.asked")
	require.Len(t, by["step refused"], 2)
	require.Equal(t, "rejected", about(&by["step refused"][0])["error.type"], "what failed comes first")
	require.Equal(t, []time.Time{at(5000), at(5010)}, of("refused", 0))
	require.Equal(t, []time.Time{at(10), at(20)}, of("refused", 1))
	require.Equal(t, []time.Time{at(5000), at(5011)}, of("short", 0), "a document that has no room for tries")
}
