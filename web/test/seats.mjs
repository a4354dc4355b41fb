// An MCP server of 2026-07-28 by standard input and output, whose tool asks for a seat in the middle of each call.
import { createInterface } from "node:readline";

const form = (message, requestedSchema) => ({ method: "elicitation/create", params: { message, requestedSchema } });
const asks = {
  resultType: "input_required", requestState: "hold 7",
  inputRequests: { seat: form("Which seat shall it be?", {
    type: "object", required: ["row", "letter"],
    properties: { row: { type: "integer", title: "Row" }, letter: { type: "string", title: "Letter", enum: ["A", "B", "C"] } },
  }) },
};

function answer({ method, params }) {
  switch (method) {
    case "server/discover":
      return { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, serverInfo: { name: "seats", version: "1" } };
    case "tools/list":
      return { resultType: "complete", tools: [{ name: "book", description: "Books a seat.", inputSchema: { type: "object", properties: { flight: { type: "string" } } } }] };
    case "tools/call": {
      const said = params.inputResponses?.seat?.content;
      return said ? { resultType: "complete", content: [], structuredContent: { flight: params.arguments.flight, hold: params.requestState, seat: said } } : asks;
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined) continue;
  const result = answer(message);
  console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error: { code: -32601, message: "there is no such method" } }) }));
}
