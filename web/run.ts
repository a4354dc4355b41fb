// One run: a graph, a timeline and a table of its steps, with one selection.
import { ask, away, calm, follow, load, may, seen, tick, trouble, type Change, type Question, type Sheet, type Written } from "./api";
import { effect, ended, h, quietly, signal, type Signal } from "./dom";
import { badge, count, duration, moment, problem, when } from "./format";
import { confirm } from "./confirm";
import { drawer } from "./drawer";
import { graph } from "./graph";
import { Model } from "./model";
import { again } from "./plan";
import { waits } from "./questions";
import { go, param, runAddress, set } from "./state";
import { steps } from "./steps";
import { timeline } from "./timeline";
import { writing } from "./writing";

// Shared is what the views of a run have in common.
export interface Shared {
  key: string;
  model: Signal<Model | null>;
  changed: Signal<number>; // counts what the stream told of the model
  step: Signal<string>;
  asked: Signal<Question[]>; // what the run asks people
  choose(step: string): void;
  enter(): void; // leads into the drawer
  retry(from: string): void;
}

// passing are the codes of what may be well again without anybody's doing.
const passing = ["no_connection", "not_ready", "timeout"];

const views = [["graph", "Graph"], ["timeline", "Timeline"], ["steps", "Steps"]] as const;

export function run(key: string) {
  const model = signal<Model | null>(null), changed = signal(0), step = signal(param("step")), open = signal<Question[]>([]);
  const shared: Shared = {
    key, model, changed, step, asked: open,
    choose: (id) => set({ step: id }, true),
    enter: () => document.querySelector<HTMLElement>(".drawer .focus")?.focus(),
    retry: (from) => void retry(model.peek()!.sheet, from),
  };
  effect(() => step.set(param("step")));
  const writes = writing(model, changed, shared.choose);
  let asked = 0, gone = false, later = 0;
  let quiet: (() => void) | null = null;
  const refresh = async () => {
    const mine = ++asked;
    clearTimeout(later);
    const sheet = await load<Sheet>("runs/" + encodeURIComponent(key));
    if (mine !== asked || gone) return;
    if (!sheet) {
      if (passing.includes(trouble.peek()?.code ?? "")) later = window.setTimeout(() => void refresh(), 3000);
      return;
    }
    model.set(new Model(sheet));
    document.title = `${sheet.run} · Stepjet`;
    if (sheet.status !== "running") quiet?.();
    else quiet ??= listen(); // which begins with an order to read once more
  };
  const soon = calm(1000, () => void refresh());
  const listen = () => follow("?run=" + encodeURIComponent(key), {
    reset: soon,
    steps: (list: Change[]) => {
      const m = model.peek();
      if (!m) return;
      m.take(list);
      changed.set(changed.peek() + 1);
      if (m.missing || list.some((c) => c.status === "retrying")) (m.missing = false), soon(); // its attempts stand in the run
    },
    tokens: (list: Written[]) => writes.take(list),
    end: () => (quiet?.(), soon()),
  } as never);
  const questions = calm(500, () => void ask<{ questions: Question[] }>("questions?run=" + encodeURIComponent(key)).then((q) => gone || open.set(q.questions), () => undefined));
  effect(() => {
    changed();
    const m = model();
    if (m && !m.over) questions(); // what it asks stands beside it
    else open.set([]);
  });
  void refresh();
  ended(() => ((gone = true), clearTimeout(later), quiet?.()));

  const view = () => (views.some(([v]) => v === param("view")) ? param("view") : "graph");
  const shown = signal(view());
  effect(() => shown.set(view()));
  const has = signal(false);
  effect(() => has.set(!!model()?.n));
  return h("main", { id: "main", tabindex: -1, class: "one" },
    () => (model() ? heading(model()!, changed) : unread()),
    () => waits(open()),
    unserved(model, changed, shared.choose),
    writes.shown,
    () => has() && h("div", { class: "tabs", role: "tablist", "aria-label": "View", onkeydown: ((e: KeyboardEvent) => turn(e)) as never },
      views.map(([name, text]) => h("button", { role: "tab", id: "tab-" + name, "aria-controls": "view", "aria-selected": () => String(shown() === name), tabindex: () => (shown() === name ? 0 : -1), onclick: () => set({ view: name === "graph" ? "" : name }, true) }, text))),
    h("div", { class: "split", hidden: () => !has() },
      h("div", { class: "view", id: "view", role: "tabpanel", "aria-labelledby": () => "tab-" + shown() },
        () => {
          const name = shown();
          return quietly(() => (name === "timeline" ? timeline : name === "steps" ? steps : graph)(shared));
        }),
      drawer(shared)));
}

// unserved says above a run which of its steps wait for workers that are not there: nothing of them goes on until there is one.
function unserved(model: Signal<Model | null>, changed: Signal<number>, choose: (step: string) => void) {
  const those = signal("[]"); // as text, so that what stays as it is stays where it is
  effect(() => {
    changed();
    const m = model();
    those.set(JSON.stringify(!m || m.over ? [] : Object.entries(m.sheet.steps.waiting ?? {}).filter(([i, why]) => why.startsWith("no worker") && m.status(+i) === "ready").map(([i, why]) => [m.sheet.steps.id[+i], m.label(+i), why])));
  });
  return () => {
    const all = JSON.parse(those()) as [string, string, string][];
    return all.length > 0 && h("div", { class: "note", role: "status" }, "Waits for a worker: ", all.slice(0, 3).map(([id, name, why], k) => [k > 0 && " · ", h("button", { class: "link", onclick: () => choose(id) }, name), ` (${why})`]),
      all.length > 3 && h("span", { class: "faint" }, ` and ${all.length - 3} more`));
  };
}

// unread stands in the place of a run that was not read: it isn't there, or it can't be asked for.
function unread() {
  const e = trouble();
  if (e?.code === "not_found") return [h("h1", null, "This run is not there"), h("p", { class: "facts" }, "It may have expired or been removed. ", h("a", { href: "/" }, "All runs"))];
  return [h("h1", { class: "hidden" }, "A run"), h("p", { class: "empty" }, e ? "It can't be read now. The page tries again." : "Reading …")];
}

function turn(e: KeyboardEvent) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!by) return;
  const tabs = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>("[role=tab]")];
  const next = tabs[(tabs.indexOf(document.activeElement as HTMLElement) + by + tabs.length) % tabs.length];
  next.click();
  next.focus();
}

function heading(m: Model, changed: Signal<number>) {
  const s = m.sheet, acts = may(["operator"]);
  const numbers = () => {
    changed();
    const counts = m.counts(m.top), within = s.steps.id.length - m.top.length;
    return [...["succeeded", "failed", "running", "retrying", "ready", "asking", "waiting", "skipped", "cancelled", "not_taken"].filter((w) => counts.get(w)).map((w) =>
      h("a", { class: "count", "data-status": w, href: `${location.pathname}?view=steps&only=${w}` }, h("b", null, counts.get(w)!.toLocaleString("en")), " ", badge(w))), within > 0 && h("span", { class: "faint" }, `and ${within.toLocaleString("en")} within`)];
  };
  return h("header", { class: "run" },
    h("p", { class: "crumbs" }, h("a", { href: "/" }, "Runs"), " / ", h("span", null, s.tenant)),
    h("div", { class: "title" }, h("h1", null, s.run), badge(s.status),
      h("span", { class: "acts" },
        acts && !m.over && h("button", { class: "danger", onclick: () => void cancel(s) }, "Cancel …"),
        h("button", { onclick: () => void again(s.key, s.tenant) }, "Edit its plan …"),
        acts && m.over && s.status !== "rejected" && h("button", { onclick: () => void retry(s, "") }, "Retry …"))),
    h("p", { class: "facts" },
      h("span", null, "submitted ", when(s.submitted)),
      h("span", { title: s.finished && moment(s.finished) }, () => took(m)),
      s.stopped_by && h("span", null, "stopped by ", s.stopped_by),
      s.retry_of && h("span", null, "retry of ", h("a", { href: runAddress(s.tenant + "." + encodeRun(s.retry_of)) }, s.retry_of), s.retry_from && ` from ${s.retry_from}`)),
    h("p", { class: "counts" }, numbers),
    s.left_out && h("p", { class: "note" }, count(s.left_out, "step"), " below others are not shown: there are too many."),
    s.problems && h("div", { class: "problems" }, h("h2", null, count(s.problems.length, "problem")), s.problems.slice(0, 100).map(problem)));
}

// took says how long a run took, or for how long it has gone on as far as anybody has been told.
function took(m: Model) {
  if (m.sheet.finished) return "took " + duration(Date.parse(m.sheet.finished) - m.submitted);
  tick();
  return "for " + duration(seen() - m.submitted) + (away() ? " as of " + new Date(away()!.since).toLocaleTimeString() : "");
}

// encodeRun writes a run id as its key has it.
function encodeRun(id: string): string {
  return [...new TextEncoder().encode(id)].map((b) => {
    const c = String.fromCharCode(b);
    return /[A-Za-z0-9_-]/.test(c) ? c : "=" + b.toString(16).toUpperCase().padStart(2, "0");
  }).join("");
}

function cancel(s: Sheet) {
  confirm("Cancel this run?", "Nothing new starts, and what executes is told to stop. What has succeeded stays in the outcome.", "Cancel the run",
    async () => void (await ask(`runs/${encodeURIComponent(s.key)}/cancel`, {})));
}

function retry(s: Sheet, from: string) {
  const text = from ? `A new run takes over what succeeded, and executes step ${from} and all that depends on it again.` :
    "A new run takes over what succeeded, and executes the rest again.";
  confirm(from ? `Retry from ${from}?` : "Retry this run?", text, "Retry", async () => {
    const next = await ask<{ key: string }>(`runs/${encodeURIComponent(s.key)}/retry`, { from });
    go(runAddress(next.key));
  });
}
