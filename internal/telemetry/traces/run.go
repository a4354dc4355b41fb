package traces

import (
	"context"
	"encoding/binary"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// OnFinish makes the spans of a run, and of its attempts.
func (t *Traces) OnFinish(e observe.Finish) {
	ctx, ok := sampled(&e.Run)
	if !ok || e.Document == nil || e.Document.Started.IsZero() { // rejected: it never began
		return
	}
	run := subjects.NewRun(e.Tenant, e.ID)
	parent, own := trace.SpanContextFromContext(ctx), spanID(run.Span(e.Generation))
	if parent.SpanID() == own { // the trace is the run's own, and this is where it begins
		ctx = context.WithValue(context.Background(), root{}, parent.TraceID())
	}
	all := attemptsOf(e.Document.Steps, nil)
	// Where there are too many, what went wrong is of more use than what did not.
	slices.SortStableFunc(all, func(a, b attempt) int { return rank(a) - rank(b) })
	shown := all[:min(len(all), maxSteps)]
	s := span{
		name: spanWorkflow, kind: trace.SpanKindInternal, id: own, began: e.Document.Submitted, end: e.Document.Finished,
		what: append(ofRun(&e.Run), operation.String("invoke_workflow"), keyStatus.String(string(e.Status))),
	}
	if e.Status != outcome.Succeeded && e.Status != outcome.Partial {
		s.failed = string(e.Status)
	}
	if left := len(all) - len(shown); left > 0 {
		s.what = append(s.what, keyLeftOut.Int(left))
	}
	ctx = t.add(ctx, s)
	for i := range shown {
		t.attempt(ctx, run, &e.Run, &shown[i])
	}
}

func (t *Traces) attempt(ctx context.Context, run subjects.Run, of *observe.Run, a *attempt) {
	named := subjects.Attempt{Run: run, Generation: of.Generation, Tool: a.step.Tool, Step: a.step.ID, Number: a.number}
	what := append(ofAttempt(of, a.step.ID, a.step.Tool, a.number), onNATS(subjects.StepTemplate)...)
	if a.number == 1 && !a.started.IsZero() {
		what = append(what, keyWait.Int64(max(a.started.Sub(a.began), 0).Milliseconds()))
	}
	if a.asked {
		what = append(what, keyAsked.Bool(true))
	}
	t.add(ctx, span{
		name: spanStep + a.step.Tool, kind: trace.SpanKindProducer, id: spanID(named.Span()), began: a.began, end: a.end,
		failed: string(a.code), what: what,
	})
}

func spanID(n uint64) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}
