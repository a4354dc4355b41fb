// The tool that the worker hosts.
import type { NatsConnection } from "@nats-io/transport-node";

export const definition = {
  name: "get_weather",
  description: "Current weather of a city.",
  inputSchema: {
    type: "object",
    properties: { name: { type: "string", description: "the city to look up" } },
    required: ["name"],
    additionalProperties: false,
  },
};

const temperatures: Record<string, number> = { Tokyo: 21.5, London: 13 };

export function weather({ name }: { name: string }): { city: string; temp: number } {
  const temp = temperatures[name];
  if (temp === undefined) throw new Error(`there is no station in ${name}`);
  return { city: name, temp };
}

/** Calls the tool: arguments and result are JSON, and the signal says that nobody waits for it any more. */
export async function call(args: string, _signal: AbortSignal, _nc: NatsConnection): Promise<string> {
  return JSON.stringify(weather(JSON.parse(args)));
}
