// Spans of OpenTelemetry, for runs that are traced, where OTEL_EXPORTER_OTLP_ENDPOINT says who takes them. The step came
// with the span of its attempt, which whoever ends the run makes: below it stand the delivery, and in that the tool.
import { context, propagation, SpanKind, SpanStatusCode, trace, type Attributes, type Context } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOffSampler, BatchSpanProcessor, NodeTracerProvider, ParentBasedSampler } from "@opentelemetry/sdk-trace-node";
import type { JsMsg } from "@nats-io/jetstream";

const provider = process.env.OTEL_EXPORTER_OTLP_ENDPOINT || process.env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  ? new NodeTracerProvider({
      resource: resourceFromAttributes({ "service.name": process.env.OTEL_SERVICE_NAME || "stepjet-node" }),
      sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }), // who submits says which runs are traced
      spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
    })
  : undefined;
provider?.register();
const tracer = trace.getTracer("stepjet");

async function within<T>(parent: Context, name: string, kind: SpanKind, attributes: Attributes, work: () => Promise<T>): Promise<T> {
  const span = tracer.startSpan(name, { kind, attributes }, parent);
  try {
    return await context.with(trace.setSpan(parent, span), work);
  } catch (e) {
    failed(e instanceof Error && e.name === "TimeoutError" ? "timeout" : "tool_failed", span);
    throw e;
  } finally {
    span.end();
  }
}

/** Says that what is going on failed. Spans hold codes, never messages: those may quote what is nobody's business. */
export function failed(code: string, span = trace.getActiveSpan()): void {
  span?.setStatus({ code: SpanStatusCode.ERROR, message: code }).setAttribute("error.type", code);
}

/** The span of one delivery of a step, from its queue to its acknowledgement. */
export function delivery(m: JsMsg, work: () => Promise<void>): Promise<void> {
  const parent = propagation.extract(context.active(), m.headers, { get: (h, name) => h?.get(name) || undefined, keys: () => [] });
  const [, , tool, , tenant, run, , step, attempt] = m.subject.split(".");
  return within(parent, `process step.${tool}`, SpanKind.CONSUMER, {
    "messaging.system": "nats", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": step,
    "stepjet.tenant": tenant, "stepjet.run": run, "stepjet.step": step, "stepjet.attempt": Number(attempt),
    "stepjet.delivery": m.info.deliveryCount,
  }, work);
}

/** The span of the tool's own work. */
export function execution<T>(tool: string, work: () => Promise<T>): Promise<T> {
  const about = { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool };
  return within(context.active(), `execute_tool ${tool}`, SpanKind.INTERNAL, about, work);
}

/** Sends what waits to be sent. */
export const ended = () => provider?.shutdown().catch((e) => console.error("spans were not sent:", e));
