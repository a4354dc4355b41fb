import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, jetstreamManager, type JsMsg } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
const definition = JSON.stringify({ name: "conformance", description: "Does as it is told.", inputSchema: { type: "object" } });
async function tool(args: { echo?: unknown; fail?: string; sleep_ms?: number; bytes?: number }, signal: AbortSignal) {
  await sleep(args.sleep_ms ?? 0, undefined, { signal });
  return args.fail ? Promise.reject(new Error(args.fail)) : args.bytes ? "x".repeat(args.bytes - 2) : args.echo;
}
const failure = (code: string, message: string, retryable?: boolean) => ["error", JSON.stringify({ code, message, retryable })] as const;
async function execute(m: JsMsg, field: (name: string) => string, cancelled: AbortSignal) {
  if (m.info.deliveryCount > 5) return failure("worker_lost", "five workers had this step, and none survived it");
  if (m.info.deliveryCount === 1 && Date.parse(field("Start-By")) < Date.now()) return failure("timeout", "no worker was free", false);
  if (field("Claim") || field("Handle")) return failure("tool_terminal", "this worker takes neither claims nor arguments over 256 KiB");
  const timeout = AbortSignal.timeout(Number(field("Timeout-Ms") || 2 ** 31 - 1));
  const work = async () => JSON.stringify(await tool(m.json(), AbortSignal.any([cancelled, timeout]))) ?? "null";
  return work().then((out) => (Buffer.byteLength(out) > 262_144 ? failure("too_large", "over 256 KiB") : (["ok", out] as const)),
    (e) => failure(timeout.aborted ? "timeout" : "tool_failed", String(e).slice(0, 4096)));
}
async function step(m: JsMsg) {
  const field = (name: string) => m.headers?.get(`Stepjet-${name}`) ?? "", result = field("Result"), stop = new AbortController();
  if (parseInt(field("Version")) > 1) return; else if (!result) return m.ack(); // a newer worker's, and nobody's
  const id = m.subject.split(".").slice(4).join("."), beat = setInterval(() => m.working(), reg.ack_wait_ms / 3), h = headers();
  const recorded = () => jsm.streams.getMessage(`KV_${result.split(".")[1]}`, { last_by_subj: result }).catch(() => null);
  if (m.info.deliveryCount === 1 || !(await recorded())) {
    const [status, body] = await execute(m, field, running.set(id, stop) && stop.signal), expect = { lastSubjectSequence: 0 };
    Object.entries({ Version: "1", Status: status, Worker: "node" }).forEach(([name, value]) => h.set(`Stepjet-${name}`, value));
    const create = () => js.publish(result, body, { headers: h, expect }).then((ack) => !ack.duplicate, () => false);
    for (let wait = 50; !(await create()) && !(await recorded()); wait = Math.min(2 * wait, 5000)) await sleep(wait);
  }
  m.ack(), clearInterval(beat), running.delete(id);
}
const nc = await connect({ servers: process.env.NATS_URL, maxReconnectAttempts: -1 }), js = jetstream(nc), jsm = await jetstreamManager(nc);
const answer = await nc.request("api.tools.register.conformance", definition, { timeout: 10_000 }); // or end, to be started again
const reg = answer.json<{ stream: string; consumer: string; cancel: string; ack_wait_ms: number }>();
const steps = await js.consumers.get(reg.stream, reg.consumer), running = new Map<string, AbortController>(); // by T.R.G.S.A
nc.subscribe(reg.cancel, { callback: (_, m) => running.get(m.subject.split(".").slice(2).join("."))?.abort() });
let open = true;
process.once("SIGTERM", () => (open = false));
const slot = async () => { for (let m; open; ) if ((m = await steps.next({ expires: 2000 }).catch(() => sleep(99, null)))) await step(m); };
await Promise.all(Array.from({ length: 16 }, slot)).then(() => nc.close());
