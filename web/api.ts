// What the page asks, and what it is told.
import { signal } from "./dom";
import type { Schema } from "./form";

export interface Fault { code: string; message: string; hint?: string; details?: unknown }

export type Role = "viewer" | "operator" | "approver";

export interface Me { name: string; roles: Role[]; tenants: string[]; all: boolean; version: string; login: boolean; now: string }

export interface Line {
  key: string; run: string; tenant: string; status: string; submitted: string; finished?: string; attention?: boolean;
  steps?: number; succeeded?: number; failed?: number; skipped?: number; tools?: string[]; failed_at?: string; retry_of?: string; doing?: string; since?: string;
  waits?: { step: string; tool: string; since: string };
  asks?: { step: string; text: string }; // what it asks a person first; the page finds it out itself
}

export interface Head { stats: { steps: number; succeeded: number; failed: number; skipped: number; cancelled?: number }; tools?: string[]; failed?: string; doing?: string; since?: string }

export interface List {
  runs: Line[]; next?: string; matched: number; counts: Record<string, number>; attention: number;
  reading?: boolean; trouble?: Fault; version: number; now: string;
}

export interface Columns {
  id: string[]; tool: number[]; status: number[]; code: number[]; attempts: number[]; ready: number[]; started: number[];
  ended: number[]; decided: number[]; bytes: number[]; deps: number[][]; parent: number[];
  tries?: Record<number, number[]>; waiting?: Record<number, string>;
}

export interface Sheet {
  key: string; run: string; tenant: string; status: string; generation: number; submitted: string; started?: string; finished?: string;
  stopped_by?: string; retry_of?: string; retry_from?: string; stats: Record<string, number>; context?: string[]; now: string;
  problems?: { code: string; message: string; path?: string; hint?: string }[];
  tools: string[]; statuses: string[]; codes: string[]; left_out?: number; steps: Columns;
}

export interface Change {
  step: string; status: string; attempt?: number; at?: number; ran?: number; waited?: number; code?: string; worker?: string;
  waiting?: string;
}

// Written is what a step is writing, as a model writes its answer: from byte at to byte end of it.
export interface Written { step: string; attempt: number; at: number; end: number; text: string }

export interface Value { text: string; bytes: number; cut?: boolean }

export interface Answered { decision: string; by?: string; reason?: string; at: string }

// Said is a word to an agent. round is the one whose planner is told of it, absent as long as none has taken it.
export interface Said { id: string; by?: string; verified?: boolean; interrupt?: boolean; round?: number; content?: unknown; bytes?: number }

// Message is what an agent told people by a call, its step. bytes is how long it is where text is not all of it.
export interface Message { step: string; round: number; at?: string; text?: string; bytes?: number; reused?: boolean }

// Refused is what a planner answered that came to nothing; count is how many problems there are, of which problems are the first.
export interface Refused { round: number; problems: Problem[]; count: number }

// Round is what one round of an agent took: usage as its planner said it, absent where it said nothing.
export interface Round {
  round: number; planner: string; unasked?: boolean; asked?: number; took_ms?: number; usage?: { input_tokens: number; output_tokens: number; cost_usd?: number };
  calls: number; failed?: number; refused?: string;
}

export interface Detail {
  id: string; tool: string; status: string; attempts?: number; ready?: string; started?: string; ended?: string; decided?: string;
  worker?: string; waiting?: string; error?: Fault; reused?: boolean; arguments?: Value; result?: Value; again?: string;
  tries?: { attempt: number; started?: string; ended?: string; worker?: string; code?: string; tool_code?: string; deliveries?: number; asked?: boolean }[];
  answer?: Answered; answers?: Answered[]; said?: Said[]; messages?: Message[]; messages_left_out?: number; refused?: Refused[]; rounds?: Round[]; whole?: string;
}

export interface Tool {
  name: string; definition: { description?: string }; contract: Record<string, unknown>; tenants?: string[]; override?: unknown;
}

export interface Demand { tool: string; steps: number; held: number; queued: number; leased: number; limit: number; oldest_ms?: number; no_consumer?: boolean }

// Host is how much of a tool live workers say they serve; those that hold it are not among the others.
export interface Host { workers: number; slots: number; busy?: number; held?: number }

export interface Tools { tools: Tool[]; demand?: { tools: Demand[]; unsure?: number[] }; unknown?: Fault; hosts?: Record<string, Host>; more_hosts?: boolean }

export interface Figure { tool: string; calls: number; failed: number; asked?: number; per_minute: number; p50_ms: number; p99_ms: number; wait_p50_ms: number; wait_p99_ms: number; codes?: Record<string, number> }

export interface Figures { tools: Figure[]; others?: Figure; runs: number; left_out?: number; since?: string }

export interface StaffTool { tool: string; slots: number; busy?: number; held?: boolean }

export interface Worker {
  worker: string; user?: string; heard: string; since: string; version?: string; host?: string; pid?: number; leaving?: boolean;
  busy: number; done: number; failed: number; tools: StaffTool[]; more?: number;
}

export interface Staff {
  workers: Worker[]; missed?: boolean; unknown?: Fault; now: string;
  orchestrators?: { id: string; version?: string; partitions: number[]; leaving?: boolean }[];
}

export interface Finding { check: string; about?: string; health: "note" | "problem"; expected?: string; found: string; means?: string; fix?: string; fixable?: boolean }

export interface Diagnosis { findings: Finding[]; well: number; at: string }

export interface Question {
  key: string; run: string; tenant: string; generation: number; step: string; number: number; kind: "approval" | "ask"; tool?: string; text?: string;
  items?: number; revision?: number; round?: number; attempt?: number; by?: string; verified?: boolean; reason?: string; digest: string; since: string; until?: string; on_timeout?: string;
  schema?: Schema; choices?: string[]; arguments?: Value; change?: Value; plan?: Value;
}

export interface Place { offset: number; end: number; line: number; column: number }

export interface Problem { code: string; message: string; path?: string; step?: string; hint?: string; count?: number }

export interface DryStep {
  id: string; tool: string; wave: number; depends_on?: string[]; repeat?: string; timeout_ms?: number; calls: number; guessed?: boolean; arguments?: unknown; status: string; steps?: DryStep[];
}

export interface Dry {
  problems: Problem[]; warnings: Problem[]; problem_places: Place[]; warning_places: Place[]; waves?: string[][]; calls: number; guessed?: boolean;
  tools?: { tool: string; calls: number; at_once: number; limit: number }[]; notices?: { kind: string; tool?: string; step?: string; message: string }[]; steps?: DryStep[]; doubts?: Problem[];
}

export interface Letter { key: string; run: string; tenant: string; step: string; tool: string; attempts: number; error: Fault; worker?: string; failed: string }

// Who calls; null until it is known, "stranger" where a token is needed.
export const me = signal<Me | "stranger" | null>(null);

// may says whether who calls has one of some roles. What is not shown to others, the server refuses them as well.
export const may = (one: Role[]) => {
  const who = me();
  return !!who && who !== "stranger" && one.some((r) => who.roles.includes(r));
};

// Why the last request failed; null where it did not.
export const trouble = signal<Fault | null>(null);

// How far this machine's clock is behind that of the server, in milliseconds: elapsed times are told by the server's.
let behind = 0;
export const now = () => Date.now() + behind;

// tick counts while time goes on and the page is seen: who reads it is told anew.
export const tick = signal(0);

// Away says since when the page is not told what happens, by the server's clock: its server has no connection to NATS, or
// does not answer itself. What is shown is of then.
export interface Away { since: number; by: "nats" | "page" }
export const away = signal<Away | null>(null);

// seen is the time that what is shown is of: what was at work when the page was last told of it counts no further.
export const seen = () => away()?.since ?? now();

// ask asks for something, or sends a body: a value, or JSON as text where "written".
export async function ask<T>(path: string, body?: unknown, written = false): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch("/api/v1/" + path, body === undefined ? {} : { method: "POST", body: written ? String(body) : JSON.stringify(body) });
  } catch {
    throw { code: "no_connection", message: "the page's server does not answer", hint: "is stepjet still running there?" } as Fault;
  }
  const text = await answer.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw { code: "internal", message: `the server answered ${answer.status} with something other than JSON` } as Fault;
  }
  if (answer.status === 401) me.set("stranger");
  if (!answer.ok) throw value as Fault;
  const said = (value as { now?: string }).now;
  if (said) behind = Date.parse(said) - Date.now();
  return value as T;
}

// load asks for what is shown: what goes wrong is shown as well, above it.
export async function load<T>(path: string): Promise<T | null> {
  try {
    const value = await ask<T>(path);
    trouble.set(null);
    return value;
  } catch (e) {
    trouble.set(e as Fault);
    return null;
  }
}

// Whether the page is told what happens: "live", "waiting" for the stream, "off" where there is nothing to follow.
export const line = signal<"live" | "waiting" | "off">("off");

// patience is how long the page's server may be away, in milliseconds, until that is said.
const patience = 4000;

// follow listens to a stream while the page can be seen, and returns what ends that.
export function follow(query: string, on: Record<string, (data: never) => void>): () => void {
  let source: EventSource | null = null, late = 0;
  const stands = (e: Event) => {
    const since = (JSON.parse((e as MessageEvent<string>).data) as { away?: string }).away;
    away.set(since ? { since: Date.parse(since), by: "nats" } : null);
  };
  const open = () => {
    if (source || document.hidden) return;
    line.set("waiting");
    source = new EventSource("/api/v1/stream" + query);
    source.onopen = () => {
      line.set("live");
      clearTimeout(late);
      late = 0;
      if (away.peek()?.by === "page") away.set(null);
    };
    source.onerror = () => {
      line.set("waiting");
      const since = now();
      late ||= window.setTimeout(() => away.peek()?.by !== "nats" && away.set({ since, by: "page" }), patience); // it may come again at once
      if (source?.readyState === EventSource.CLOSED) {
        shut();
        again = window.setTimeout(open, 3000);
      }
    };
    source.addEventListener("lost", stands);
    source.addEventListener("reset", stands);
    for (const [kind, take] of Object.entries(on)) {
      source.addEventListener(kind, (e) => take(JSON.parse((e as MessageEvent<string>).data) as never));
    }
  };
  const shut = () => {
    source?.close();
    source = null;
  };
  let again = 0;
  const seen = () => (document.hidden ? shut() : open());
  document.addEventListener("visibilitychange", seen);
  open();
  return () => {
    clearTimeout(again);
    clearTimeout(late);
    away.set(null);
    document.removeEventListener("visibilitychange", seen);
    shut();
    line.set("off");
  };
}

// calm calls something at most once in so many milliseconds, the last time too.
export function calm(every: number, call: () => void): () => void {
  let last = 0, timer = 0;
  return () => {
    if (timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      last = performance.now();
      call();
    }, Math.max(0, last + every - performance.now()));
  };
}
