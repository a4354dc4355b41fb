import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstream, JetStreamApiError, jetstreamManager, type JsMsg } from "@nats-io/jetstream";
import { connect, headers, type MsgHdrs } from "@nats-io/transport-node";
import { delivery, ended, execution, failed } from "./spans.js";
import { Stream, type Tool } from "./stream.js";
import { call, definition } from "./tool.js";
type Answer = readonly [status: "ok" | "error", body: string | Uint8Array, handle?: string];
const failure = (code: string, message: string, retryable?: boolean): Answer => (failed(code), ["error", JSON.stringify({ code, message, retryable })]);
async function claim(m: JsMsg, subject: string, nonce: string, lost = "outcome_unknown"): Promise<Answer | "mine" | "drop" | "over"> {
  const [kv, runs, p, t, r, g] = subject.split("."), h = headers();
  Object.entries({ "Stepjet-Version": "1", "Nats-Expected-Last-Subject-Sequence": g!,
    "Nats-Expected-Last-Subject-Sequence-Subject": [kv, runs, p, t, r, "plan"].join(".") }).forEach(([name, value]) => h.set(name, value));
  for (let wait = 50; ; wait = Math.min(2 * wait, 5000)) {
    const refused = await js.publish(subject, JSON.stringify({ nonce, seq: m.seq }), { headers: h }).then(() => null, (e) => e);
    if (!refused) return "mine"; else if (refused instanceof JetStreamApiError && refused.code === 10071) return "over"; // the run is
    const there = (await last(subject))?.json<{ nonce: string; seq: number }>();
    if (there?.nonce === nonce) return "mine"; else if (there && there.seq !== m.seq) return "drop";
    if (there) return failure(lost, "a worker began this step and was lost");
    await sleep(wait);
  }
}
async function large(out: Uint8Array, name: string, bucket?: string): Promise<Answer> {
  const nuid = randomUUID().replaceAll("-", ""), size = out.length, chunks = Math.ceil(size / 131_072), sha = createHash("sha256").update(out);
  for (let i = 0; i < chunks; i++) await js.publish(`$O.${bucket ?? "blobs"}.C.${nuid}`, out.subarray(i * 131_072, (i + 1) * 131_072));
  const digest = `SHA-256=${sha.copy().digest("base64").replaceAll("+", "-").replaceAll("/", "_")}`;
  await js.publish(`$O.${bucket ?? "blobs"}.M.${Buffer.from(name).toString("base64").replaceAll("+", "-").replaceAll("/", "_")}`,
    JSON.stringify({ name, bucket: bucket ?? "blobs", nuid, size, chunks, digest, mtime: new Date().toISOString() }));
  return ["ok", "", JSON.stringify({ name, size, sha256: sha.digest("hex"), nuid, chunks, bucket })];
}
async function fetched({ nuid, size: all, bucket = "blobs" }: { nuid: string; size: number; bucket?: string }) {
  const parts: Uint8Array[] = [];
  for (let seq = 1, size = 0; size < all; ) {
    const c = await jsm.streams.getMessage(`OBJ_${bucket}`, { seq, next_by_subj: `$O.${bucket}.C.${nuid}` } as object as { seq: number });
    parts.push(c!.data), (size += c!.data.length), (seq = c!.seq + 1);
  }
  return Buffer.concat(parts).toString();
}
async function execute(m: JsMsg, field: (name: string) => string, id: string, cancelled: AbortSignal, work: Work): Promise<Answer | "drop" | "over"> {
  const again = m.info.deliveryCount > 1 || (field("Stream") && /,\d+$/.test(m.headers!.get("Nats-Msg-Id"))), nonce = randomUUID(); // or a repair
  const lost = field("Stream") && !field("Claim") ? "tool_failed" : undefined; // the next attempt is told what has begun
  const mine = () => claim(m, `${field("Result")}.claim`, nonce, lost), first = field("Claim") || again ? await mine() : undefined;
  if (first === "over" || (first && (field("Claim") || field("Stream")) && first !== "mine")) return first;
  if (m.info.deliveryCount > 5) return failure("worker_lost", "five workers had this step, and none survived it");
  if (m.info.deliveryCount === 1 && Date.parse(field("Start-By")) < Date.now()) return failure("timeout", "no worker was free", false);
  const late = Date.parse(field("Deadline") || "9999-01-01") + 2000 - Date.now(), limit = Math.min(Number(field("Timeout-Ms") || Infinity), late);
  const timeout = AbortSignal.timeout(Math.max(0, Math.min(limit, 2 ** 31 - 1))), bag = JSON.parse(field("Context") || "{}");
  const secrets = field("Context-Secrets").split(",").map((key) => bag[key]).filter((s) => Buffer.byteLength(s ?? "") >= 4);
  let stream: Stream | undefined, claimed = first && Promise.resolve<typeof first | "over">(first);
  try {
    const args = field("Handle") ? await fetched(JSON.parse(field("Handle"))) : m.string();
    const stop = AbortSignal.any([cancelled, timeout]);
    stop.throwIfAborted();
    stream = new Stream(nc, field("Stream") && `stream.${m.subject.split(".")[2]}.${id}`, nonce, async () => (await (claimed ??= mine())) === "mine");
    const tooled = (call as Tool)(args, stop, nc, stream), given = once(stop, "abort").then(() => stop.throwIfAborted());
    work.over = Promise.race([tooled.catch(() => null), sleep(Math.min(limit + reg.ack_wait_ms, 2 ** 31 - 1), null, { ref: false })]); // a deaf tool holds its slot no longer
    const out = Buffer.from((await execution(definition.name, () => Promise.race([tooled, given]))) as string);
    return out.length > 262_144 ? await large(out, `${id.replaceAll(".", "/")}/${randomUUID()}`, field("Bucket") || undefined) : ["ok", out];
  } catch (e) {
    const code = timeout.aborted ? (field("Claim") ? "outcome_unknown" : "timeout") : "tool_failed";
    return failure(code, secrets.reduce((text, s) => text.replaceAll(s, "[secret]"), String(e)).slice(0, 4096));
  } finally {
    stream?.close();
  }
}
type Work = { over?: Promise<unknown> }; // done when the tool has returned, or a lease after its time
const last = (subject: string) => jsm.streams.getMessage(`KV_${subject.split(".")[1]}`, { last_by_subj: subject }).catch(() => null);
async function step(m: JsMsg) {
  const field = (name: string) => m.headers?.get(`Stepjet-${name}`) ?? "", result = field("Result"), stop = new AbortController();
  const version = (field("Version") || "1").split(".")[0]!; // 3: a bucket; 2, and what is sealed, a newer worker's
  if (version !== "1" && (version !== "3" || field("Context-Sealed"))) return;
  const [, , t, p, ...rest] = m.subject.split("."), id = rest.join("."), own = [p, ...rest.slice(0, 3), "step", t, ...rest.slice(3)].join(".");
  if (!/^\$KV\.runs_\d+\./.test(result) || result.split(".").slice(2).join(".") !== own || !field("Key") || !+field("Attempt")) return m.ack(); // nobody's
  let held = Date.now(), lost = false; // when the lease was last surely ours, and whether it may have run out since
  const keep = (at = Date.now()) => ((lost ||= at - held > reg.ack_wait_ms * 0.9), m.working(), nc.flush().then(() => void (held = at), () => {}));
  const beat = setInterval(() => keep(), reg.ack_wait_ms / 3, keep()), h: MsgHdrs = headers(), work: Work = {};
  if (m.info.deliveryCount === 1 || !(await last(result))) {
    const answer = await execute(m, field, id, running.set(id, stop) && stop.signal, work), expect = { lastSubjectSequence: 0 };
    if (answer !== "drop" && answer !== "over") {
      Object.entries({ Version: "1", Status: answer[0], Worker: "node" }).forEach(([name, value]) => h.set(`Stepjet-${name}`, value));
      if (answer[2]) h.set("Stepjet-Handle", answer[2]);
      for (const name of ["traceparent", "tracestate"]) if (m.headers?.get(name)) h.set(name, m.headers.get(name));
      const create = () => js.publish(result, answer[1], { headers: h, expect }).then((ack) => !ack.duplicate, () => false);
      for (let wait = 50; !(await create()) && !(await last(result)); wait = Math.min(2 * wait, 5000)) await sleep(wait);
    }
  }
  await work.over; // until then the slot is the tool's
  keep(), clearInterval(beat), running.delete(id), lost || m.ack(); // else it is the next delivery's
}
const nc = await connect({ servers: process.env.NATS_URL, maxReconnectAttempts: -1 }), js = jetstream(nc), jsm = await jetstreamManager(nc);
const answer = await nc.request(`api.tools.register.${definition.name}`, JSON.stringify(definition), { timeout: 10_000 }); // or end, to be started again
const reg = answer.json<{ stream: string; consumer: string; cancel: string; ack_wait_ms: number }>();
const steps = await js.consumers.get(reg.stream, reg.consumer), running = new Map<string, AbortController>(); // by T.R.G.S.A
nc.subscribe(reg.cancel, { callback: (_, m) => running.get(m.subject.split(".").slice(2).join("."))?.abort() });
let open = true;
process.once("SIGTERM", () => (open = false));
const taken = async (m: JsMsg | null) => m && delivery(m, () => step(m));
const slot = async () => { while (open) await taken(await steps.next({ expires: 2000 }).catch(() => sleep(99, null))); };
await Promise.all(Array.from({ length: 16 }, slot)).then(() => nc.close()).then(ended);
