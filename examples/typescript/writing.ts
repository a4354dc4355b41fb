// A planner that hands over the steps of its answer while it writes it. It stands in for a model: put the calls of yours,
// each as soon as it is whole, in the place of the generator's.
import { once } from "node:events";
import { createInbox, type NatsConnection } from "@nats-io/transport-node";
import type { Stream } from "./stream.js";

export const definition = {
  name: "writing",
  description: "Plans two calls, of which the first runs while the second is written.",
  inputSchema: { type: "object" },
  "x-orchestration": { request: "whole", timeout_ms: 20_000, retry: { max_attempts: 3 } }, // of a worker that is lost nobody else writes the answer on
};

type Step = { id: string; tool: string; arguments: object };
type Asked = { round: number; rounds: { records?: { id: string; result?: unknown }[] }[]; began?: Step[] };

// The second call is written once the first one has begun: the tool says so to an inbox, as it is asked to. What had begun
// before another worker was lost that wrote this answer is written as it was, so that it is not made again.
async function* write({ began = [] }: Asked, nc: NatsConnection, signal: AbortSignal): AsyncGenerator<Step> {
  const before = began.find((call) => call.id === "first");
  const inbox = createInbox(), begun = new AbortController();
  const sub = nc.subscribe(inbox, { max: 1, callback: () => begun.abort() });
  yield { id: "first", tool: "conformance", arguments: before?.arguments ?? { tell: inbox, echo: "it began while the answer was written" } };
  if (!before && !begun.signal.aborted) await once(begun.signal, "abort", { signal });
  sub.unsubscribe();
  yield { id: "second", tool: "conformance", arguments: { echo: "$ref:first" } };
}

export async function call(args: string, signal: AbortSignal, nc: NatsConnection, stream: Stream): Promise<string> {
  const asked = JSON.parse(args) as Asked, steps: Step[] = [];
  if (asked.round > 0) return JSON.stringify({ output: asked.rounds[0]?.records?.find((call) => call.id === "second")?.result ?? null });
  for await (const step of write(asked, nc, signal)) {
    stream.step(step); // it may run now,
    steps.push(step); // and is a part of the answer all the same
  }
  return JSON.stringify({ steps });
}
