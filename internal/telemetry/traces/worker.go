package traces

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/subjects"
)

// OnSubmit makes the span of a submission.
func (t *Traces) OnSubmit(e observe.Submit) {
	ctx, ok := sampled(e.Traceparent)
	if !ok {
		return
	}
	s := span{
		name: spanSubmit, kind: trace.SpanKindProducer, began: e.Began, end: e.Ended,
		what: append(ofRun(&e.Run), onNATS(subjects.IntakeTemplate)...),
	}
	if e.Err != nil {
		s.failed = string(fault.CodeOf(e.Err))
	}
	t.add(ctx, s)
}

// OnExecute makes the spans of what a worker did with one delivery.
func (t *Traces) OnExecute(e observe.Execute) {
	ctx, ok := sampled(e.Traceparent)
	if !ok {
		return
	}
	what := append(ofAttempt(&e.Run, e.Step, e.Tool, e.Number), keyWorker.String(e.Worker))
	process := span{
		name: spanProcess + e.Tool, kind: trace.SpanKindConsumer, began: e.Delivered, end: e.Ended,
		what: append(append(attributes{keyDelivery.Int(e.Delivery), keyLeft.Bool(e.Left)}, what...), onNATS(subjects.StepTemplate)...),
	}
	execute := span{
		name: spanExecute + e.Tool, kind: trace.SpanKindInternal, began: e.Began, end: e.Ended,
		what: append(attributes{operation.String("execute_tool")}, what...),
	}
	if e.Err != nil {
		process.failed, execute.failed = string(e.Err.Code), string(e.Err.Code)
	}
	ctx = t.add(ctx, process)
	if !e.Began.IsZero() {
		t.add(ctx, execute)
	}
}
