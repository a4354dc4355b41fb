// A Stepjet for the tests of the page, with runs of every kind.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;

export class Stack {
  static async start() {
    const s = new Stack();
    s.data = await mkdtemp(join(tmpdir(), "stepjet-ui-"));
    await s.up("127.0.0.1:0");
    return s;
  }
  // up begins it, or has it come back with what it had, on an address.
  async up(listen) {
    const s = this;
    const mcp = join(s.data, "mcp.json"); // in its folder, since the lock is written beside it
    await writeFile(mcp, JSON.stringify({ mcpServers: { seats: { command: process.execPath, args: [join(root, "web/test/seats.mjs")] } } }));
    s.process = spawn(join(root, "bin/stepjet"), ["dev", "-o", "json", "--data", s.data, "--listen", listen, "--ui", "127.0.0.1:0", "--tools", join(root, "web/test/tools.json"), "--mcp", mcp]);
    s.process.stderr.pipe(process.stderr);
    const first = await new Promise((done, failed) => {
      let text = "";
      s.process.stdout.on("data", (b) => (text += b).includes("\n") && done(text));
      s.process.on("exit", (code) => failed(new Error(`stepjet dev ended with ${code}`)));
    });
    const up = JSON.parse(first);
    s.url = up.ui;
    s.server = up.url;
  }
  // page serves the page beside it, for everybody, and outlives it.
  page() {
    return this.serve([]);
  }
  // guarded serves the page beside it, for those who have the token.
  async guarded(token, role = "viewer") {
    const file = join(this.data, "tokens.json");
    const sha256 = createHash("sha256").update(token).digest("hex");
    await writeFile(file, JSON.stringify({ tokens: [{ sha256, name: "ann", role, tenants: ["acme"] }] }));
    return this.serve(["--auth", "token=" + file]);
  }
  serve(flags) {
    this.beside?.kill("SIGKILL");
    this.beside = spawn(join(root, "bin/stepjet"), ["ui", "--server", this.server, "--listen", "127.0.0.1:0", ...flags]);
    return new Promise((done) => {
      let text = "";
      this.beside.stderr.on("data", (b) => {
        const url = (text += b).match(/http:\/\/[\d.:]+/);
        if (url) done(url[0]);
      });
    });
  }
  // computed is the processor time, in milliseconds, that the whole of it has had.
  computed() {
    const fields = readFileSync(`/proc/${this.process.pid}/stat`, "utf8").replace(/.*\) /s, "").split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12])); // user and system, in ticks of 10 ms
  }
  // kill ends it as a lost machine does.
  async kill() {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const gone = new Promise((done) => this.process.on("exit", done));
      this.process.kill("SIGKILL");
      await gone;
    }
  }
  async end() {
    this.beside?.kill("SIGKILL");
    await this.kill();
    await rm(this.data, { recursive: true, force: true });
  }
  // remove takes a run out of the history, as an operator does.
  async remove(key) {
    const [, host, port] = /nats:\/\/(.*):(\d+)/.exec(this.server), body = JSON.stringify({ filter: "$KV.history." + key });
    await new Promise((done, failed) => {
      const s = connect(Number(port), host);
      let text = "";
      s.on("error", failed);
      s.on("data", (b) => /"success":true/.test((text += b)) && (s.destroy(), done()));
      s.write(`CONNECT {"verbose":false,"headers":false}\r\nSUB gone 1\r\nPUB $JS.API.STREAM.PURGE.KV_history gone ${body.length}\r\n${body}\r\n`);
    });
  }
  // apply registers a definition, as an operator does.
  async apply(definition) {
    const file = join(this.data, definition.name + ".json");
    await writeFile(file, JSON.stringify(definition));
    await this.command("agents", "apply", file);
  }
  // command runs one of stepjet's.
  async command(...args) {
    const done = spawn(join(root, "bin/stepjet"), [...args, "--server", this.server], { stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    done.stderr.on("data", (b) => (text += b));
    const code = await new Promise((ended) => done.on("exit", ended));
    if (code !== 0) throw new Error(`stepjet ${args.join(" ")} ended with ${code}: ${text}`);
  }
  // say says something to the agent of a run of acme.
  say(run, text, ...more) {
    return this.command("agents", "say", run, text, "--tenant", "acme", "--step", "clerk", ...more);
  }
  async ask(path, body) {
    const r = await fetch(`${this.url}/api/v1/${path}`, body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
    const value = await r.json();
    if (!r.ok) throw new Error(`${path}: ${JSON.stringify(value)}`);
    return value;
  }
  submit(run, steps, tenant = "default", more = {}) {
    return this.ask(`runs?tenant=${tenant}&run=${encodeURIComponent(run)}`, { steps, ...more });
  }
  // until asks until what comes is right.
  async until(path, right) {
    for (let k = 0; k < 1200; k++) {
      const value = await this.ask(path);
      if (right(value)) return value;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`${path} never came right`);
  }
}

const step = (id, tool, args = {}, more = {}) => ({ id, tool, arguments: args, ...more });
export const hostile = '<img src=x onerror="window.hacked=1">';

// order is a run with a card that is declined, a call that is tried three times, items and a plan within.
export const order = [
  step("customer", "sleep", { ms: 120 }), step("orders", "sleep", { ms: 340 }),
  step("risk", "fail", { until_attempt: 3, message: "503 from upstream" }, { depends_on: ["customer"], retry: { max_attempts: 4, backoff: { strategy: "constant", initial_ms: 250 } } }),
  step("stock", "echo", { orders: "$ref:orders" }),
  { id: "notify", tool: "sleep", for_each: { in: [80, 20, 140, 60, 200, 90, 30, 45], as: "item" }, arguments: { ms: "$ref:item" }, depends_on: ["stock"] },
  step("charge", "fail", { message: "the card was declined by its issuer: insufficient funds", terminal: true }, { depends_on: ["risk", "stock"] }),
  step("ship", "echo", { charge: "$ref:charge" }), step("receipt", "echo", { charge: "$ref:charge" }), step("label", "echo", { ship: "$ref:ship" }),
  step("summary", "echo", { sent: "$ref:notify", stock: "$ref:stock" }),
  { id: "report", plan: { output_steps: ["render"], steps: [step("gather", "sleep", { ms: 70 }), step("render", "echo", { of: "$ref:gather" })] }, depends_on: ["stock"] },
];

// refund asks for an approval, for a choice and for a form.
export const refund = [
  step("order", "echo", { id: "order-42", paid: 129.5, customer: "Ann Arbor" }),
  { id: "refund", tool: "echo", arguments: { order: "$ref:order.id", amount: "$ref:order.paid" }, approval: { ask: "Refund ${ref:order.paid} EUR to ${ref:order.customer}?", timeout: "48h" } },
  step("day", "ask", { question: "On which day shall we come?", choices: ["monday", "tuesday", 12345678901234567890n.toString()] }),
  step("visit", "ask", { question: "Where do we have to ring?", schema: { type: "object", required: ["street", "floor"], properties: {
    street: { type: "string", title: "Street", description: "as it stands at the door" }, floor: { type: "integer", title: "Floor" }, lift: { type: "boolean", title: "There is a lift" },
    bell: { enum: ["left", "right"], title: "Bell" }, contact: { type: "object", title: "Contact", properties: { name: { type: "string" }, phone: { type: "string" } } }, notes: { type: "array", items: { type: "string" } } } } }),
];

// clerk is an agent that has no model: test/planner.mjs answers.
const clerk = {
  name: "clerk", description: "Settles what a customer asks for.",
  inputSchema: { type: "object", properties: { hold: { type: "integer" }, odd: { type: "string" }, tell: { type: "string" } } },
  agent: { planner: { tool: "planner", mode: "plan" }, instructions: "Settle the bill.", tools: ["sleep", "echo", "fail", "communicate"] },
};

// large makes steps that wait for earlier ones, of which one in so many fails; always the same.
export function large(n, failing) {
  let seed = 7;
  const random = (below) => ((seed = (seed * 1103515245 + 12345) % 2147483648) >> 8) % below;
  return Array.from({ length: n }, (_, i) => {
    const after = i < 40 ? [] : [`s${i - 20 - random(Math.min(100, i - 20))}`];
    if (failing && i % failing === failing - 1) return step(`s${i}`, "fail", { message: `item ${i} is bad`, terminal: true }, { depends_on: after });
    return random(2) ? step(`s${i}`, "sleep", { ms: 1 + random(50) }, { depends_on: after }) : step(`s${i}`, "echo", { i }, { depends_on: after });
  });
}

// told submits a run whose agent is said something in its third round, twice, and whose planner is refused an answer in its
// fourth; it returns once the third has begun.
export async function told(s, run) {
  await s.submit(run, [{ id: "clerk", tool: "clerk", arguments: { hold: 60, odd: hostile } }], "acme");
  await s.until(`runs/acme.${run}`, (r) => r.steps.id.includes("clerk/=2/=plan"));
}

// fill submits runs of every kind, and waits for those that end.
export async function fill(s) {
  for (let i = 0; i < 24; i++) {
    const parts = Array.from({ length: 2 + (i % 5) }, (_, k) => step(`part-${k}`, "echo", { of: "$ref:lookup" }));
    await s.submit(`invoice-${2200 + i}`, [step("lookup", "sleep", { ms: 3 + ((i * 7) % 60) }), ...parts], ["default", "acme", "globex"][i % 3]);
  }
  await s.submit("order-1042", order, "acme", { output_steps: ["summary", "receipt"] });
  await s.submit("order-1043", [order[0], order[1], step("charge", "fail", { message: "gateway time-out", terminal: true }, { depends_on: ["customer"] })], "acme");
  await s.submit("nightly-import", [step("a", "sleep", { ms: 200 }), step("b", "sleep", { ms: 3600000 }, { depends_on: ["a"] }), step("c", "echo", { b: "$ref:b" })], "globex");
  await s.submit("typo", [step("a", "fetch_wether", { x: 1 }), step("b", "echo", { x: "$ref:nothing.y" })]);
  await s.submit(hostile, [step("a", "echo", { html: hostile }), step("b", "fail", { message: hostile, terminal: true })]);
  await s.submit("reindex-2000", large(2000, 250), "acme");
  await s.submit("refund-7", refund, "acme", { output_steps: ["refund", "visit"] });
  await s.apply(clerk);
  await s.submit("settle-311", [step("bill", "echo", { number: 311 }), step("clerk", "clerk", {}, { depends_on: ["bill"] }), step("file", "echo", { what: "$ref:clerk" })], "acme");
  await told(s, "settle-314");
  await s.say("settle-314", "Write to her office, not to her home.", "--by", "ann");
  await s.say("settle-314", `${hostile} Is this of any use?`, "--by", hostile, "--interrupt");
  await s.until("runs?limit=100", (l) => l.matched === 33 && l.counts.running === 2);
  await s.until("questions", (q) => q.questions.length === 3);
}
