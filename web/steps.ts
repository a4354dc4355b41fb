// A run's steps as a table, of which only the rows in sight are there.
import { effect, h, keyed, signal } from "./dom";
import { badge, count, duration, size } from "./format";
import { type Model } from "./model";
import { param, set } from "./state";
import type { Shared } from "./run";

const tall = 34;
const headings: [string, string, ((m: Model, i: number) => number | string) | null][] = [
  ["", "Step", null], ["status", "Status", (m, i) => m.status(i)], ["tool", "Tool", (m, i) => m.tool(i)],
  ["attempts", "Attempts", (m, i) => -m.sheet.steps.attempts[i]],
  ["waited", "Waited", (m, i) => -(m.times(i).waiting + m.times(i).backoff)], ["ran", "Executed", (m, i) => -m.times(i).running],
  ["bytes", "Result", (m, i) => -m.sheet.steps.bytes[i]], ["code", "Error", (m, i) => m.code(i) || "~"],
];

export function steps(m: Shared): HTMLElement {
  const rows = signal<number[]>([]), scrolled = signal(0), height = signal(600), version = signal(0);
  const body = h("div", { class: "rows", role: "rowgroup" });
  const box = h("div", {
    class: "virtual", role: "table", "aria-label": "Steps", "aria-rowcount": () => rows().length + 1, tabindex: 0,
    onscroll: (() => scrolled.set(Math.floor(box.scrollTop / tall))) as never, onkeydown: ((e: KeyboardEvent) => key(e)) as never,
  },
    h("div", { class: "heads", role: "rowgroup" }, h("div", { class: "step", role: "row" }, headings.map(([name, text]) =>
      h("div", { role: "columnheader", "aria-sort": () => (param("sort") === name ? "ascending" : "none") },
        h("button", { tabindex: -1, onclick: () => set({ sort: name }, true) }, text, () => param("sort") === name && name ? " ↓" : ""))))),
    body);
  new ResizeObserver(() => height.set(box.clientHeight)).observe(box);

  effect(() => {
    const model = m.model();
    m.changed();
    if (!model) return;
    const text = param("find").toLowerCase(), status = param("only"), sort = headings.find(([name]) => name && name === param("sort"))?.[2];
    const keeps = (i: number) => (!status || model.status(i) === status) && (!text || (model.sheet.steps.id[i] + " " + model.tool(i)).toLowerCase().includes(text));
    const tree = (list: number[]): number[] => list.flatMap((i) => [i, ...tree(model.below[i])]);
    let all = tree(model.top).filter(keeps);
    if (sort) {
      const by = new Map(all.map((i) => [i, sort(model, i)]));
      all = all.sort((a, b) => (by.get(a)! < by.get(b)! ? -1 : by.get(a)! > by.get(b)! ? 1 : a - b));
    }
    rows.set(all);
    version.set(version.peek() + 1);
  });
  const shown = () => {
    const model = m.model(), all = rows();
    version();
    if (!model) return;
    const first = Math.max(0, scrolled() - 8), some = all.slice(first, first + Math.ceil(height() / tall) + 20);
    body.style.height = `${all.length * tall}px`;
    keyed(body, some.map((i, k) => ({ i, at: first + k })), (r) => model.sheet.steps.id[r.i], (r) => row(m, r));
  };
  effect(shown);
  const at = () => rows.peek().indexOf(m.model.peek()?.rows.get(m.step.peek()) ?? -1);
  const reveal = (k: number) => {
    const top = k * tall, see = box.clientHeight - tall;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + tall > box.scrollTop + see) box.scrollTop = top + tall - see;
  };
  let revealed = "";
  effect(() => {
    rows();
    if (m.step() === revealed || at() < 0) return;
    revealed = m.step(); // from then on the view is the reader's
    requestAnimationFrame(() => reveal(at()));
  });
  const key = (e: KeyboardEvent) => {
    const jump = ({ ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 } as Record<string, number>)[e.key];
    const model = m.model.peek(), all = rows.peek();
    if (jump && model && all.length) m.choose(model.sheet.steps.id[all[Math.max(0, Math.min(all.length - 1, at() + jump))]]);
    else if (e.key === "Enter" && e.target === box) m.enter();
    else return;
    e.preventDefault();
  };
  return h("div", { class: "sheet" },
    h("div", { class: "filters" },
      h("input", { type: "search", placeholder: "Find a step or a tool", "aria-label": "Find a step or a tool", value: () => param("find"), oninput: ((e: Event) => set({ find: (e.target as HTMLInputElement).value }, true)) as never }),
      h("select", { "aria-label": "Status", onchange: ((e: Event) => set({ only: (e.target as HTMLSelectElement).value }, true)) as never },
        () => {
          const model = m.model();
          m.changed();
          if (!model) return null;
          const counts = model.counts(model.sheet.steps.id.map((_, i) => i));
          return [h("option", { value: "" }, "Every status"), ...[...counts].map(([s, n]) => h("option", { value: s, selected: () => param("only") === s }, `${s} (${n})`))];
        }),
      h("span", { class: "faint" }, () => count(rows().length, "step"))),
    box);
}

function row(m: Shared, first: { i: number; at: number }): [HTMLElement, (r: { i: number; at: number }) => void] {
  const id = m.model.peek()!.sheet.steps.id[first.i];
  const cells = h("div", { class: "cells" });
  const e = h("div", { class: "step", role: "row", onclick: () => m.choose(id) }, cells);
  let said = "";
  return [e, (r) => {
    e.style.transform = `translateY(${r.at * tall}px)`;
    e.setAttribute("aria-rowindex", String(r.at + 2));
    e.setAttribute("aria-selected", String(m.step() === id));
    const now = m.model.peek()!, i = r.i, t = now.times(i), c = now.sheet.steps; // where it stands may be another than before: steps come between
    const values = [now.label(i), now.depth(i), now.below[i].length > 0, now.tool(i), now.status(i), c.attempts[i], t.waiting + t.backoff, t.running, c.bytes[i], now.code(i)].join("|");
    if (values === said) return;
    said = values;
    const cell = (...x: (Node | string)[]) => h("div", { role: "cell" }, ...x);
    const name = h("span", { title: id }, now.label(i));
    name.style.paddingLeft = `${now.depth(i) * 14}px`;
    cells.replaceChildren(cell(name), cell(badge(now.status(i))), cell(now.tool(i) || (now.below[i].length ? "" : "value")), cell(c.attempts[i] ? String(c.attempts[i]) : ""),
      cell(t.waiting + t.backoff > 0 ? duration(t.waiting + t.backoff) : ""), cell(t.running > 0 ? duration(t.running) : ""),
      cell(c.bytes[i] ? size(c.bytes[i]) : ""), cell(now.code(i)));
  }];
}
