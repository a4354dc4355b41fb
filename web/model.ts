// A run as the page holds it: its columns, kept right by what the stream tells.
import { now, seen, type Change, type Sheet } from "./api";

export interface Times { blocked: number; waiting: number; running: number; backoff: number }

export const failed = (status: string) => status === "failed" || status === "cancelled";
export const over = (status: string) => ["succeeded", "failed", "skipped", "cancelled", "not_taken"].includes(status);

// own names the calls that an agent makes for itself.
const own: Record<string, string> = { "=plan": "the planner", "=summary": "a summary", "=final": "the planner, for a last answer", "=stream": "calls while it writes" };

export class Model {
  readonly n: number;
  readonly rows = new Map<string, number>();
  readonly top: number[] = []; // the plan's own steps
  below: number[][]; // what stands below each step
  readonly drawn: number[]; // what a graph shows: the plan's own steps, and the calls of their agents' rounds
  readonly deps: number[][]; // what each step that is drawn waits for
  readonly submitted: number;
  missing = false; // the stream named a step that is not here

  constructor(readonly sheet: Sheet) {
    const s = sheet.steps;
    this.n = s.id.length;
    this.submitted = Date.parse(sheet.submitted);
    this.below = s.id.map(() => []);
    s.id.forEach((id, i) => {
      this.rows.set(id, i);
      if (s.parent[i] < 0) this.top.push(i);
      else this.below[s.parent[i]].push(i);
    });
    this.below = this.below.map((list, i) => (this.agent(i) ? list.filter((k) => !this.handsOn(i, k) && !this.unneeded(k)) : list));
    this.deps = [...s.deps];
    this.drawn = this.top.flatMap((i) => [...this.unroll(i), i]);
  }

  private agent(i: number) { return this.rows.has(this.sheet.steps.id[i] + "/=0/=plan"); }
  // speaks says that a step is an agent that goes on: people may say something to it.
  speaks(i: number) { return this.agent(i) && !over(this.status(i)); }
  // within returns the round of an agent in which a call stands, and its id there.
  private within(agent: number, i: number): [round: number, call: string] | null {
    const id = this.sheet.steps.id, found = /^=(\d+)\/(.+)$/.exec(id[i].slice(id[agent].length + 1));
    return found && [+found[1], found[2]];
  }
  // handsOn says that a step is r0, r1, …, by which calls refer to earlier rounds. It does nothing.
  private handsOn(agent: number, i: number) {
    const call = this.within(agent, i)?.[1] ?? "";
    return /^r\d+$/.test(call) && (!this.tool(i) || this.tool(i) === call);
  }
  // unneeded says that a step is the summary of a round before which nothing was to be cut, or stands for calls that began while
  // a planner wrote, of which there are none.
  private unneeded(i: number) {
    const id = this.sheet.steps.id[i];
    return (this.status(i) === "not_taken" && id.endsWith("/=summary")) || (id.endsWith("/=stream") && !this.below[i].length);
  }
  // rounds returns the calls of an agent's rounds, each round's planner first; none for what is no agent.
  rounds(i: number): number[][] {
    const all: number[][] = [];
    if (!this.agent(i)) return all;
    for (const k of this.below[i]) (all[this.within(i, k)?.[0] ?? 0] ??= []).push(k);
    return all.filter((calls) => calls);
  }
  // unroll links the rounds of an agent: what a planner asked for waits for it, and the next planner for all of that.
  private unroll(i: number): number[] {
    let before = this.sheet.steps.deps[i];
    const rounds = this.rounds(i);
    for (const [planner, ...calls] of rounds) {
      this.deps[planner] = before;
      for (const k of calls) this.deps[k] = [planner];
      before = calls.length ? calls : [planner];
    }
    this.deps[i] = before;
    return rounds.flat();
  }
  // call says what a step is to its agent's round, for who sees in which that stands; null for what is in none.
  call(i: number): { round: number; name: string } | null {
    const { id, parent } = this.sheet.steps, early = parent[i] >= 0 && id[parent[i]].endsWith("/=stream");
    const above = early ? parent[parent[i]] : parent[i], at = above >= 0 && this.agent(above) && this.within(above, i);
    if (at && early) return { round: at[0], name: at[1].slice("=stream/".length) + " (early)" };
    return at ? { round: at[0], name: at[1].startsWith("=guard-") ? "a guard" : own[at[1]] ?? at[1] } : null;
  }
  // label names a step for who sees what it stands below: "round 1: search" for a call of an agent.
  label(i: number): string {
    const at = this.call(i);
    return at ? `round ${at.round}: ${at.name}` : this.sheet.steps.id[i];
  }

  get over() { return this.sheet.status !== "running"; }
  // The end of what is drawn, in milliseconds since the run was submitted.
  get end() {
    const s = this.sheet;
    if (s.finished) return Math.max(1, Date.parse(s.finished) - this.submitted, this.last());
    return Math.max(1, seen() - this.submitted);
  }
  private last() { return this.sheet.steps.decided.reduce((a, b) => Math.max(a, b), 0); }

  status(i: number) { return this.sheet.statuses[this.sheet.steps.status[i]] ?? ""; }
  tool(i: number) { return this.sheet.tools[this.sheet.steps.tool[i]] ?? ""; }
  code(i: number) { return this.sheet.codes[this.sheet.steps.code[i]] ?? ""; }
  depth(i: number): number { return this.sheet.steps.parent[i] < 0 ? 0 : 1 + this.depth(this.sheet.steps.parent[i]); }

  // attempts returns when a step executed, as [from, to] pairs; one that goes on ends now.
  attempts(i: number): [number, number][] {
    const s = this.sheet.steps, all: [number, number][] = [], tries = s.tries?.[i] ?? [];
    for (let k = 0; k + 1 < tries.length; k += 2) if (tries[k] >= 0) all.push([tries[k], Math.max(tries[k], tries[k + 1])]);
    if (!all.length && this.below[i].length && s.ready[i] >= 0) {
      all.push([s.ready[i], s.decided[i] >= 0 ? s.decided[i] : this.end]); // what stands below it executes
    } else if (!all.length && s.started[i] >= 0) {
      all.push([s.started[i], s.ended[i] >= s.started[i] ? s.ended[i] : over(this.status(i)) ? s.started[i] : this.end]);
    }
    return all;
  }

  // times adds up what a step spent its time with.
  times(i: number): Times {
    const s = this.sheet.steps, t: Times = { blocked: Math.max(0, s.ready[i]), waiting: 0, running: 0, backoff: 0 };
    if (s.ready[i] < 0) return t;
    let at = s.ready[i];
    this.attempts(i).forEach(([from, to], k) => {
      if (k === 0) t.waiting += Math.max(0, from - at);
      else t.backoff += Math.max(0, from - at);
      t.running += to - from;
      at = to;
    });
    if (!over(this.status(i)) && this.status(i) !== "running" && !this.attempts(i).length) t.waiting = Math.max(0, this.end - at);
    return t;
  }

  // critical returns the steps that the run's length follows from, the first one first.
  critical(): number[] {
    const s = this.sheet.steps;
    let at = this.top.reduce((last, i) => (last < 0 || s.decided[i] > s.decided[last] ? i : last), -1);
    const path: number[] = [];
    while (at >= 0 && s.decided[at] >= 0) {
      path.unshift(at);
      at = s.deps[at].reduce((last, d) => (last < 0 || s.decided[d] > s.decided[last] ? d : last), -1);
    }
    return path;
  }

  // take keeps the columns right. What is over stays so: events come late, and twice.
  take(changes: Change[]) {
    const s = this.sheet.steps;
    for (const c of changes) {
      const i = this.rows.get(c.step);
      if (i === undefined) {
        this.missing = true;
        continue;
      }
      if (over(this.status(i))) continue;
      s.status[i] = place(this.sheet.statuses, c.status);
      if (c.code) s.code[i] = place(this.sheet.codes, c.code);
      if (c.attempt) s.attempts[i] = c.attempt;
      s.waiting = { ...s.waiting, [i]: c.waiting ?? "" };
      if (c.status === "running" && s.started[i] < 0) s.started[i] = Math.max(0, s.ready[i], now() - this.submitted);
      if (!c.at || !(over(c.status) || c.status === "retrying")) continue;
      const at = c.at - this.submitted;
      if (c.status !== "retrying") s.decided[i] = at;
      if (c.ran) (s.ended[i] = at), (s.started[i] = Math.max(0, at - c.ran));
      if (s.ready[i] < 0 && (c.ran || c.waited)) s.ready[i] = Math.max(0, at - (c.ran ?? 0) - (c.waited ?? 0));
    }
  }

  // counts tells how many steps of a list have each status.
  counts(rows: number[]): Map<string, number> {
    const all = new Map<string, number>();
    for (const i of rows) all.set(this.status(i), (all.get(this.status(i)) ?? 0) + 1);
    return all;
  }
}

function place(list: string[], name: string): number {
  const at = list.indexOf(name);
  return at >= 0 ? at : list.push(name) - 1;
}
