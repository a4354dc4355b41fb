package spans_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/observe/spans"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/stepjettest"
)

func provider(t *testing.T) (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	to := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(sdk.WithSyncer(to))
	return p, to
}

// TestTheSpansOfAClient: a submission is a span below the caller's, and the run is of the same trace.
func TestTheSpansOfAClient(t *testing.T) {
	t.Parallel()
	p, to := provider(t)
	s := stepjettest.New(t)
	stepjettest.Register(s, "look", func(context.Context, struct{}) (string, error) { return "seen", nil })
	c, err := client.New(t.Context(), s.Conn(), client.Config{Observer: spans.New(p)})
	require.NoError(t, err)
	ctx, caller := p.Tracer("x").Start(t.Context(), "caller")
	out, err := c.Run(ctx, []byte(`{"steps":[{"id":"a","tool":"look"}]}`), client.SubmitOptions{Run: "r-1", Header: spans.Header(ctx)})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status)
	c.Close() // what was told is made
	sent := to.GetSpans()
	require.Len(t, sent, 1)
	require.Equal(t, "send plan.submit", sent[0].Name)
	require.Equal(t, trace.SpanKindProducer, sent[0].SpanKind)
	require.Equal(t, caller.SpanContext().TraceID(), sent[0].SpanContext.TraceID())
	require.Equal(t, caller.SpanContext().SpanID(), sent[0].Parent.SpanID())
}

func TestTheSpansOfAWorker(t *testing.T) {
	t.Parallel()
	p, to := provider(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	e := observe.Execute{
		Attempt: observe.Attempt{Run: observe.Run{Tenant: "acme", ID: "r", Traceparent: parent + "1"}, Step: "a", Tool: "get", Number: 1},
		Worker:  "w", Delivery: 1, Delivered: at, Began: at.Add(time.Second), Ended: at.Add(-time.Second),
		Err: fault.New(fault.Timeout, "secret"),
	}
	o := spans.New(p)
	o.OnExecute(e)
	sent := to.GetSpans()
	require.Len(t, sent, 2)
	process, execute := sent[0], sent[1]
	require.Equal(t, "process step.get", process.Name)
	require.Equal(t, "b7ad6b7169203331", process.Parent.SpanID().String())
	require.Equal(t, process.SpanContext.SpanID(), execute.Parent.SpanID())
	require.Equal(t, "execute_tool get", execute.Name)
	require.Equal(t, codes.Error, execute.Status.Code)
	require.Equal(t, "timeout", execute.Status.Description, "a code, and no message")
	require.Equal(t, process.StartTime, process.EndTime, "no span ends before it began")

	to.Reset()
	e.Traceparent = parent + "0"
	o.OnExecute(e)
	e.Traceparent = ""
	o.OnExecute(e)
	require.Empty(t, to.GetSpans(), "whoever submitted does not keep it")
	require.Nil(t, spans.Header(context.Background()))
}
