// What is known of one step.
import { ask, away, may, type Answered, type Detail, type Fault, type Value } from "./api";
import { rounds, speaking } from "./agent";
import { effect, ended, h, quietly, signal } from "./dom";
import { badge, duration, indent, moment, quote, size } from "./format";
import { runAddress } from "./state";
import { edit } from "./plan";
import { questionAddress } from "./questions";
import type { Shared } from "./run";
import { words } from "./words";

export function drawer(m: Shared): HTMLElement {
  const detail = signal<Detail | null>(null), wrong = signal<Fault | null>(null);
  let asked = "";
  const read = (step: string, what: string) => void ask<Detail>(`runs/${encodeURIComponent(m.key)}/steps/${encodeURIComponent(step)}`).then(
    (d) => what === asked && (wrong.set(null), JSON.stringify(d) !== JSON.stringify(detail.peek()) && detail.set(d)),
    (e: Fault) => what === asked && (detail.set(null), wrong.set(e)));
  effect(() => {
    const step = m.step(), model = m.model();
    m.changed();
    if (!step || !model) return;
    const i = model.rows.get(step);
    const what = `${step} ${i === undefined ? "" : `${model.status(i)} ${model.sheet.steps.attempts[i]} ${model.below[i].length}`}`;
    if (what === asked) return;
    if (detail.peek()?.id !== step) detail.set(null);
    asked = what;
    wrong.set(null);
    read(step, what);
  });
  const timer = setInterval(() => { // no event tells that something was said to an agent; and what was read may be of before an event
    const step = m.step.peek(), model = m.model.peek(), i = model?.rows.get(step), shown = detail.peek();
    if (!model || i === undefined || document.hidden || away.peek()) return;
    if (model.speaks(i) || wrong.peek()?.code === "no_connection" || (shown && shown.status !== model.status(i))) read(step, asked);
  }, 3000);
  ended(() => clearInterval(timer));
  const speaks = signal(""); // the agent that is shown, while something may be said to it
  effect(() => {
    const model = m.model(), step = m.step(), i = model?.rows.get(step);
    m.changed();
    speaks.set(model && i !== undefined && !model.over && model.speaks(i) ? step : "");
  });
  const speak = speaking(m, () => read(m.step.peek(), asked));
  return h("aside", { class: "drawer", "aria-label": "Step", hidden: () => !m.step(), onkeydown: ((e: KeyboardEvent) => e.key === "Escape" && m.choose("")) as never },
    h("header", null, h("h2", { tabindex: -1, class: "focus" }, () => m.step()), h("button", { class: "close", "aria-label": "Close", onclick: () => m.choose("") }, "✕")),
    () => {
      const d = detail(), e = wrong();
      if (!m.step()) return null;
      if (e) return fault(e);
      return d ? h("div", { class: "body" }, quietly(() => content(m, d))) : h("p", { class: "faint" }, "Reading …");
    },
    () => {
      const step = speaks();
      return step && quietly(() => speak(step));
    });
}

function content(m: Shared, d: Detail) {
  const span = (a?: string, b?: string) => (a && b ? Date.parse(b) - Date.parse(a) : -1);
  const facts: [string, string | Node | undefined | false][] = [
    ["Call", within(m, d.id)], ["Tool", d.tool || "value"], ["Waits", d.waiting && local(d.waiting)], ["Ready", d.ready && moment(d.ready)],
    ["Waited", d.ready && d.started && duration(span(d.ready, d.started))], ["Executed", d.started && d.ended && duration(span(d.started, d.ended))],
    ["Decided", d.decided && moment(d.decided)], ["Worker", d.worker], ["Attempts", d.attempts ? String(d.attempts) : undefined],
    ["Reused", d.reused && "taken over from the run that this one tries again"],
    ["Answer", d.answer && said(d.answer)],
  ];
  const file = (of: string) => `/api/v1/runs/${encodeURIComponent(m.key)}/steps/${encodeURIComponent(d.id)}/blob${of}`;
  return [
    h("p", null, badge(d.status), () => (d.status === "asking" || m.asked().some((q) => q.step === d.id)) && [" ", h("a", { href: questionAddress(m.key, d.id) }, "Answer …")]),
    d.error && fault(d.error),
    h("dl", null, facts.map(([name, value]) => value && [h("dt", null, name), h("dd", null, value)])),
    (d.tries?.length ?? 0) > 1 && tries(d), answers(d), rounds(m, d), words(m, d),
    part("Arguments", d.arguments, "h3", file("?of=arguments")), part("Result", d.result, "h3", file("")),
    h("p", { class: "copies" },
      copy("Copy as JSON", () => JSON.stringify(d, null, 2)),
      copy("Copy command", () => `stepjet get ${quote(m.model()!.sheet.run)} --tenant ${m.model()!.sheet.tenant} --step ${quote(d.id)}`),
      d.again && copy("Copy as one-step plan", () => indent(d.again!)),
      d.again && h("button", { onclick: () => edit(indent(d.again!), m.model()!.sheet.tenant) }, "Edit as a plan …"),
      may(["operator"]) && m.model()?.over && m.model()!.sheet.steps.parent[m.model()!.rows.get(d.id) ?? -1] === -1 &&
        h("button", { onclick: () => m.retry(d.id) }, "Retry from here …")),
  ];
}

// local writes the times of a text as a reader's clock has them.
const local = (text: string) => text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, moment);

// within names a step for a reader where its id does not.
function within(m: Shared, id: string): string | undefined {
  const model = m.model(), i = model?.rows.get(id), label = i === undefined ? id : model!.label(i);
  return label === id ? undefined : label;
}

export function fault(e: Fault) {
  return h("div", { class: "fault", role: "alert" }, h("b", null, e.code), h("p", null, e.message), e.hint && h("p", { class: "hint" }, "→ ", e.hint),
    e.details !== undefined && e.details !== null && h("pre", null, JSON.stringify(e.details, null, 2)));
}

function tries(d: Detail) {
  return h("table", { class: "tries" }, h("thead", null, h("tr", null, ["Attempt", "Took", "Worker", "Came to"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", null, d.tries!.map((t) => h("tr", null,
      h("td", null, t.attempt, (t.deliveries ?? 1) > 1 && ` (handed out ${t.deliveries} times)`),
      h("td", null, t.started && t.ended ? duration(Date.parse(t.ended) - Date.parse(t.started)) : "–"),
      h("td", null, t.worker ?? "–"), h("td", null, t.asked ? "asked a person" : t.tool_code || t.code || "succeeded")))));
}

const said = (a: Answered) => [a.decision, a.by && "by " + a.by, a.reason].filter(Boolean).join(" ");

// answers shows what people said to a tool that asked in the middle of a call, each question after the other.
function answers(d: Detail) {
  return d.answers && h("section", null, h("h3", null, "Answers to its tool"),
    h("ol", { class: "answers" }, d.answers.map((a) => h("li", null, said(a), " ", h("small", { class: "faint" }, moment(a.at))))));
}

export function part(name: string, v: Value | undefined, heading: "h2" | "h3" = "h3", file = "") {
  if (!v) return null;
  return h("section", null, h(heading, null, name, h("small", null, " ", size(v.bytes))),
    v.text ? h("pre", { tabindex: 0 }, indent(v.text)) : h("p", { class: "faint" }, "Too large to be shown here."),
    v.cut && h("p", { class: "faint" }, v.text && "Only its beginning is shown. ", file ? h("a", { href: file, download: "" }, "Save the whole") : "The whole: stepjet get RUN --step STEP -o json"));
}

function copy(text: string, of: () => string) {
  const b: HTMLButtonElement = h("button", { onclick: () => {
    navigator.clipboard.writeText(of()).then(() => (b.textContent = "Copied"), () => (b.textContent = "Not allowed to copy"));
    setTimeout(() => (b.textContent = text), 1500);
  } }, text);
  return b;
}

export const stepLink = (key: string, step: string) => h("a", { href: runAddress(key, step) }, step);
