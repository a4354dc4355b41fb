// The tool that the worker hosts: here the conformance tool of docs/protocol.md. Put yours in its place.
import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";

export const definition = { name: "conformance", description: "Does as it is told.", inputSchema: { type: "object" } };

// Numbers stay the digits that they came as: they are strings with a mark while they are here. A tool that is content
// with the numbers of JavaScript has JSON.parse and JSON.stringify alone.
const mark = (text: string) => text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (s) => (s[0] === '"' ? s : `"\\u0000#${s}"`));
const unmark = (text: string) => text.replace(/"\\u0000#([^"]*)"/g, "$1");
const num = (x: unknown) => Number(String(x ?? "\0#0").slice(2));

type Args = { echo?: unknown; fail?: string; sleep_ms?: unknown; deaf?: boolean; bytes?: unknown; tell?: string };

async function tool(args: Args, signal: AbortSignal, nc: NatsConnection) {
  await sleep(num(args.sleep_ms), undefined, args.deaf ? {} : { signal });
  if (args.tell) nc.publish(args.tell);
  return args.fail ? Promise.reject(new Error(args.fail)) : args.bytes ? "x".repeat(num(args.bytes) - 2) : args.echo;
}

/** Calls the tool: arguments and result are JSON, and the signal says that nobody waits any more. */
export async function call(args: string, signal: AbortSignal, nc: NatsConnection): Promise<string> {
  return unmark(JSON.stringify(await tool(JSON.parse(mark(args)), signal, nc)) ?? "null");
}
