// Sets what counts in place of what a tool declares, after what it comes to was looked at.
import { ask, calm, me, type Fault, type Tool } from "./api";
import { h, signal } from "./dom";
import { fault } from "./drawer";

interface Looked { before?: object; after?: object; was?: Record<string, unknown>; set: boolean }

export function override(t: Tool, done: () => void) {
  const who = me();
  if (!who || who === "stranger") return;
  const looked = signal<Looked | null>(null), wrong = signal<Fault | null>(null), busy = signal(false), tenant = signal(who.all ? "" : who.tenants[0]);
  const area = h("textarea", { class: "code", rows: 8, spellcheck: "false", "aria-label": "Override", oninput: (() => soon()) as never });
  let asked = 0;
  const send = (set: boolean, text = area.value.trim()) => ask<Looked>(`tools/${encodeURIComponent(t.name)}/override`, { override: text, tenant: tenant.peek(), set });
  const look = async () => {
    const mine = ++asked;
    try {
      const l = await send(false);
      if (mine === asked) (wrong.set(null), looked.set(l));
    } catch (e) {
      if (mine === asked) (wrong.set(e as Fault), looked.set(null));
    }
  };
  const soon = calm(250, () => void look());
  const start = async () => { // with what stands
    try {
      const { was } = await send(false, "");
      const { by: _, ...rest } = was ?? {};
      area.value = was ? JSON.stringify(rest, null, 2) : '{\n  "x-orchestration": {}\n}';
    } catch (e) {
      wrong.set(e as Fault);
    }
    void look();
  };
  const act = (text?: string) => {
    busy.set(true);
    send(true, text).then(() => (done(), d.close()), (e: Fault) => (wrong.set(e), busy.set(false)));
  };
  const d = h("dialog", { class: "wide", "aria-label": "Override " + t.name, onclose: () => d.remove() },
    h("h2", null, "Override ", t.name),
    h("p", { class: "faint" }, "What is named here counts in place of what the tool's worker declares; null takes a declared field away. Runs that have started keep what they started with."),
    who.tenants.length > 0 && h("label", { class: "field" }, h("span", null, "For"), h("select", { onchange: ((e: Event) => (tenant.set((e.target as HTMLSelectElement).value), void start())) as never },
      who.all && h("option", { value: "" }, "all tenants"), who.tenants.map((x) => h("option", { value: x }, `the runs of ${x} alone: it can only take away attempts, time and keys of the context`)))),
    area,
    () => wrong() && fault(wrong()!),
    h("div", { role: "status" }, () => looked() && changes(looked()!)),
    h("p", { class: "acts" }, h("button", { onclick: () => d.close() }, "Back"),
      h("button", { class: "danger", hidden: () => !looked()?.was, disabled: () => busy(), onclick: () => act("") }, "Clear it"),
      h("button", { class: "primary", disabled: () => busy() || !looked(), onclick: () => act() }, "Set it")));
  document.body.append(d);
  d.showModal();
  area.focus();
  void start();
}

// changes lists what of the contract would be another.
function changes(l: Looked) {
  if (!l.after) return h("p", { class: "note" }, "The tool is not registered yet: the override counts as soon as it is.");
  const before = flat(l.before ?? {}), after = flat(l.after);
  const names = [...new Set([...before.keys(), ...after.keys()])].filter((n) => before.get(n) !== after.get(n)).sort();
  if (!names.length) return h("p", { class: "faint" }, "The contract stays as it is.");
  return h("table", { class: "tries" }, h("thead", null, h("tr", null, ["Contract", "Now", "Then"].map((x) => h("th", { scope: "col" }, x)))),
    h("tbody", null, names.map((n) => h("tr", null, h("td", null, n), h("td", null, before.get(n) ?? "–"), h("td", null, h("b", null, after.get(n) ?? "–"))))));
}

function flat(o: object, prefix = "", into = new Map<string, string>()): Map<string, string> {
  for (const [k, v] of Object.entries(o)) {
    if (v && typeof v === "object" && !Array.isArray(v)) flat(v as object, prefix + k + ".", into);
    else into.set(prefix + k, JSON.stringify(v));
  }
  return into;
}
