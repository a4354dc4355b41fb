// Calls the tools of a Stepjet as the protocol's own client does: by the revision of before, by today's, and as tasks. It is
// given the server's address, writes a line for each thing that it saw, and ends with 1 at the first that is not as it
// should be.
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome, TaskFailedError } from "@modelcontextprotocol/ext-tasks/client";

const url = new URL(process.argv[2]);
const info = { name: "witness", version: "1" };
// Who declares the extension takes tasks in the place of answers, which the client by itself doesn't.
const plain = { elicitation: {} };
const withTasks = { ...plain, extensions: { "io.modelcontextprotocol/tasks": {} } };
const today = "2026-07-28";

const saw = (revision, what) => console.log(`  ${revision}  ${what}`);
const textOf = (result) => result.content[0].text;

// yes is what a person says who is asked for an approval.
const yes = { action: "accept", content: { decision: "approve" } };

async function connected(capabilities, versionNegotiation, asked) {
  const client = new Client(info, { capabilities, versionNegotiation });
  client.setRequestHandler("elicitation/create", async (request) => {
    asked.push(request.params.message);
    return yes;
  });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

// plainly calls tools and waits for their answers.
async function plainly(revision, versionNegotiation) {
  const asked = [];
  const client = await connected(plain, versionNegotiation, asked);
  const { tools } = await client.listTools();
  assert(tools.some((t) => t.name === "greet") && tools.some((t) => t.name === "execute_tool_plan"));
  saw(revision, `${tools.length} tools are listed`);

  assert.equal(textOf(await client.callTool({ name: "greet", arguments: { name: "Ann" } })), "Hello, Ann!");
  saw(revision, "a tool answers");

  const steps = [
    { id: "a", tool: "greet", for_each: { in: ["Ann", "Bob"] }, arguments: { name: "$ref:item" } },
    { id: "b", tool: "greet", arguments: { name: "${ref:a[1].data}" } },
  ];
  const plan = await client.callTool({ name: "execute_tool_plan", arguments: { steps, output: "$ref:b" } });
  assert.match(textOf(plan), /Hello, Hello, Bob!!/);
  saw(revision, "a plan of two steps comes to what its last step says");

  const refused = await client.callTool({ name: "execute_tool_plan", arguments: { steps: [{ id: "a", tool: "gret" }] } });
  assert(refused.isError && /greet/.test(JSON.stringify(refused)), JSON.stringify(refused));
  saw(revision, "a plan with a mistake is refused, and the answer says what to write");

  assert((await client.callTool({ name: "test_error_handling", arguments: {} })).isError);
  saw(revision, "a tool that fails is an error of the tool");

  assert.equal(textOf(await client.callTool({ name: "test_elicitation", arguments: { message: "m" } })), "fine");
  assert.equal(asked.length, 1);
  saw(revision, "a person is asked, and says yes");

  await assert.rejects(client.callTool({ name: "nobody", arguments: {} }));
  saw(revision, "a tool that nobody has is an error of the protocol");
  await client.close();
}

// dispatch sends a request as a host does whose client does not know tasks yet.
let last = 0;
async function dispatch(request, { signal } = {}) {
  const id = `witness-${++last}`;
  const response = await fetch(url, {
    method: "POST",
    signal,
    headers: {
      "Content-Type": "application/json", Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": today, "Mcp-Method": request.method, "Mcp-Name": request.params?.taskId ?? request.params?.name ?? "",
    },
    body: JSON.stringify({ ...request, jsonrpc: "2.0", id: request.id ?? id }),
  });
  const text = await response.text();
  if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) return JSON.parse(text);
  const messages = text.split("\n").filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)));
  return messages.find((m) => "result" in m || "error" in m);
}

// asTasks calls tools whose calls are tasks: followed, handed on to another session, cancelled, failed, asked about.
async function asTasks() {
  const asked = [];
  const session = async () =>
    createTaskSessionFromClient(await connected(withTasks, { mode: { pin: today } }, []), {
      endpointId: "witness", rawDispatch: dispatch,
      v2RequestFraming: { protocolVersion: today, clientInfo: info, clientCapabilities: withTasks },
      onInputRequest: async (request) => {
        asked.push(request);
        return yes;
      },
    });
  const one = await session();
  const call = async (name, args) => {
    const execution = await one.callTool(name, args);
    assert.equal(execution.kind, "task", name);
    return execution;
  };

  const slow = await call("slow_compute", { seconds: 1, label: "x" });
  const seen = new Set();
  const { outcome } = await slow.settle({ onEvent: (e) => void (e.task && seen.add(e.task.status)) });
  assert.equal(textOf(resultFromTaskOutcome(outcome)), "computed");
  assert(seen.has("working") || seen.has("completed"), [...seen].join());
  saw("tasks     ", "a slow call is a task, and is followed to its end");

  const handed = await call("slow_compute", { seconds: 1 });
  let reference;
  await handed.handoff((r) => void (reference = JSON.parse(JSON.stringify(r))));
  const two = await session();
  const resumed = await two.resumeTask(reference);
  assert.equal(textOf(resultFromTaskOutcome((await resumed.settle()).outcome)), "computed");
  saw("tasks     ", "another session goes on with it");
  await two.close();

  const stopped = await call("slow_compute", { seconds: 60 });
  await stopped.cancel();
  assert.equal((await stopped.settle()).outcome.status, "cancelled");
  saw("tasks     ", "it is cancelled");

  const failing = (await (await call("failing_job", {})).settle()).outcome;
  assert(failing.status === "failed" || failing.result.isError, JSON.stringify(failing));
  const broken = (await (await call("protocol_error_job", {})).settle()).outcome;
  assert(broken.status === "failed" && broken.error instanceof TaskFailedError, JSON.stringify(broken));
  saw("tasks     ", "one that fails says so");

  const confirmed = (await (await call("confirm_delete", { filename: "f" })).settle()).outcome;
  assert.equal(textOf(resultFromTaskOutcome(confirmed)), "deleted");
  assert.equal(asked.length, 1);
  saw("tasks     ", "one that waits for a person asks, and goes on");
  await one.close();
}

await plainly("2025-11-25", undefined);
await plainly(today, { mode: { pin: today } });
await asTasks();
