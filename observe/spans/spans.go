// Package spans makes OpenTelemetry spans of what a program of one's own does for Stepjet: of each plan that it
// submits, and of each step that its tools do. It imports OpenTelemetry's API and not its SDK: where spans go, the
// program says.
//
//	tell := spans.New(otel.GetTracerProvider())
//	c, err := client.New(ctx, nc, client.Config{Observer: tell})
//	r, err := c.Submit(ctx, plan, client.SubmitOptions{Header: spans.Header(ctx)})
//
// With the header a run is part of the trace that ctx is in, if that is sampled: the spans of the run and of its
// attempts, which whoever ends it sends (docs/operations.md), are below the same parent as the client's, and those of
// its workers below them.
//
//	send plan.submit              PRODUCER  a client, of its submission
//	process step.<tool>           CONSUMER  a worker, of each delivery
//	└ execute_tool <tool>         INTERNAL  a worker, of the handler
//
// Spans hold names, codes and times: never arguments, results, context or messages of errors.
package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/subjects"
)

// Observer makes spans of what a client and a worker tell.
type Observer struct {
	observe.None
	tracer trace.Tracer
}

// New makes an observer that begins spans with the provider's tracer.
func New(p trace.TracerProvider) *Observer {
	return &Observer{tracer: p.Tracer("github.com/stepjet/stepjet")}
}

// Header is that of a plan which is to be part of the trace of ctx: traceparent, and tracestate where there is one. It
// is nil where ctx is in no trace.
func Header(ctx context.Context) map[string][]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	var h map[string][]string
	for name, value := range carrier {
		if h == nil {
			h = map[string][]string{}
		}
		h[name] = []string{value}
	}
	return h
}

// OnSubmit makes the span of a submission.
func (o *Observer) OnSubmit(e observe.Submit) {
	ctx, ok := sampled(&e.Run)
	if !ok {
		return
	}
	code := ""
	if e.Err != nil {
		code = string(fault.CodeOf(e.Err))
	}
	what := append(ofRun(&e.Run), onNATS(subjects.IntakeTemplate)...)
	o.add(ctx, "send plan.submit", trace.SpanKindProducer, e.Began, e.Ended, code, what)
}

// OnExecute makes the spans of what a worker did with one delivery.
func (o *Observer) OnExecute(e observe.Execute) {
	ctx, ok := sampled(&e.Run)
	if !ok {
		return
	}
	code := ""
	if e.Err != nil {
		code = string(e.Err.Code)
	}
	what := append(ofRun(&e.Run),
		attribute.String("stepjet.step", e.Step), attribute.Int("stepjet.attempt", e.Number),
		attribute.String("stepjet.worker", e.Worker),
		attribute.String("gen_ai.tool.name", e.Tool), attribute.String("gen_ai.tool.call.id", e.Step))
	delivery := []attribute.KeyValue{attribute.Int("stepjet.delivery", e.Delivery), attribute.Bool("stepjet.left", e.Left)}
	whole := append(append(delivery, what...), onNATS(subjects.StepTemplate)...)
	ctx = o.add(ctx, "process step."+e.Tool, trace.SpanKindConsumer, e.Delivered, e.Ended, code, whole)
	if !e.Began.IsZero() {
		own := append([]attribute.KeyValue{attribute.String("gen_ai.operation.name", "execute_tool")}, what...)
		o.add(ctx, "execute_tool "+e.Tool, trace.SpanKindInternal, e.Began, e.Ended, code, own)
	}
}

// add makes a span that is over, below the one of ctx, and returns its context.
func (o *Observer) add(
	ctx context.Context, name string, kind trace.SpanKind, began, ended time.Time, code string, what []attribute.KeyValue,
) context.Context {
	ctx, made := o.tracer.Start(ctx, name,
		trace.WithSpanKind(kind), trace.WithTimestamp(began), trace.WithAttributes(what...))
	if code != "" {
		made.SetStatus(codes.Error, code)
		made.SetAttributes(attribute.String("error.type", code))
	}
	if ended.Before(began) { // clocks differ, and a span of less than no time is refused
		ended = began
	}
	made.End(trace.WithTimestamp(ended))
	return ctx
}

func ofRun(r *observe.Run) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("stepjet.run", r.ID), attribute.String("stepjet.tenant", r.Tenant)}
}

func onNATS(template string) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("messaging.system", "nats"), attribute.String("messaging.destination.template", template),
	}
}

// sampled returns the parent that came with a run or an attempt, and whether its trace is kept.
func sampled(r *observe.Run) (context.Context, bool) {
	if !r.Sampled() {
		return nil, false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": r.Traceparent, "tracestate": r.Tracestate})
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}
