// Package traces makes OpenTelemetry spans of what a program of Stepjet is told as an observer.
//
// Nobody holds a trace open. The spans of a run and of its attempts are made once, by whoever is told of its end, from
// the times of the ledger; their ids are hashes of their names (docs/protocol.md, "Trace"), so that a worker's spans
// have their parent before it is made. A process that dies between a run's end and the export takes that run's spans
// with it: its workers' own are there, and their parents are not. A run under way has its workers' spans alone.
//
//	send plan.submit              PRODUCER  a client, of its submission
//	invoke_workflow               INTERNAL  the owner of a run, from its submission to its end
//	└ step <tool>                 PRODUCER  the owner, of each attempt: from ready to decided
//	  └ process step.<tool>       CONSUMER  a worker, of each delivery
//	    └ execute_tool <tool>     INTERNAL  a worker, of the handler
//
// A run is traced where its plan's traceparent says so, or the orchestrator's share of runs without one has it. Spans
// hold names, codes and times: never arguments, results, context or messages of errors.
package traces

import (
	"context"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/observe/spans"
)

// Bounds of what is made of a run, and of what waits to be sent. What comes while so much waits is lost.
const (
	maxSteps   = 1000
	maxWaiting = 16 << 10
)

// Traces makes spans. It is an observe.Observer for clients, orchestrators and workers.
type Traces struct {
	*spans.Observer // of what a client and a worker tell
	provider        *sdk.TracerProvider
	tracer          trace.Tracer
}

// New makes an observer that hands spans to the exporter, some at a time. resource says which program they are of.
func New(to sdk.SpanExporter, resource ...sdk.TracerProviderOption) *Traces {
	options := append([]sdk.TracerProviderOption{
		sdk.WithSampler(sdk.AlwaysSample()), // it is asked before anything is made
		sdk.WithIDGenerator(chosen{}),
		sdk.WithBatcher(to, sdk.WithMaxQueueSize(maxWaiting)),
	}, resource...)
	p := sdk.NewTracerProvider(options...)
	return &Traces{Observer: spans.New(p), provider: p, tracer: p.Tracer("github.com/stepjet/stepjet")}
}

// Close sends what waits, until ctx ends.
func (t *Traces) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// span is one that is over.
type span struct {
	name       string
	kind       trace.SpanKind
	id         trace.SpanID // zero: any
	began, end time.Time
	what       attributes
	failed     string // the code of what went wrong; empty for nothing
	links      []trace.Link
}

// add makes a span below the parent, and returns its context.
func (t *Traces) add(ctx context.Context, s span) context.Context {
	ctx, made := t.tracer.Start(
		context.WithValue(ctx, wanted{}, s.id), s.name, trace.WithSpanKind(s.kind), trace.WithTimestamp(s.began),
		trace.WithAttributes(s.what...), trace.WithLinks(s.links...),
	)
	if s.failed != "" {
		made.SetStatus(failure, s.failed)
		made.SetAttributes(errorType.String(s.failed))
	}
	made.End(trace.WithTimestamp(latest(s.end, s.began))) // clocks differ, and a span of less than no time is refused
	return ctx
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// sampled returns the parent that came with a run, and whether its trace is kept.
func sampled(r *observe.Run) (context.Context, bool) {
	if !r.Sampled() {
		return nil, false
	}
	ctx := propagator.Extract(context.Background(), carrier(r.Traceparent))
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}
