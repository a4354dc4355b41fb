package traces

import (
	"context"
	"math/rand/v2"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// wanted is the key, in a context, of the id that the next span is to have.
type wanted struct{}

// root is the key of the trace that a span without a parent begins.
type root struct{}

// chosen generates the ids that the context names, and others at random.
type chosen struct{}

// NewIDs returns those of a span without a parent.
func (chosen) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(root{}).(trace.TraceID)
	for !id.IsValid() {
		fill(id[:])
	}
	return id, chosen{}.NewSpanID(ctx, id)
}

// NewSpanID returns that of a span with a parent.
func (chosen) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(wanted{}).(trace.SpanID)
	for !id.IsValid() {
		fill(id[:])
	}
	return id
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
}

// propagator reads W3C Trace Context.
var propagator = propagation.TraceContext{}

// carrier is a traceparent as the headers that it came in.
type carrier string

// Get returns the traceparent, and nothing for other names.
func (c carrier) Get(name string) string {
	if name == "traceparent" {
		return string(c)
	}
	return ""
}

// Set does nothing: nothing is sent on.
func (carrier) Set(string, string) {}

// Keys returns the one name there is.
func (carrier) Keys() []string { return []string{"traceparent"} }
