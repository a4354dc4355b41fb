// The plan editor: what is wrong is marked as one types, what a plan would come to stands beside it, and it is run.
import { ask, calm, load, may, me, trouble, type Dry, type DryStep, type Fault, type Place, type Problem, type Question, type Sheet, type Value } from "./api";
import { effect, ended, h, quietly, signal, type Child } from "./dom";
import { fault } from "./drawer";
import { Editor, units, type Mark } from "./editor";
import { count, duration, indent } from "./format";
import { graph } from "./graph";
import { Model } from "./model";
import { go, param, runAddress } from "./state";

const example = `{
  "steps": [
    {"id": "first", "tool": "echo", "arguments": {"text": "Hello"}},
    {"id": "second", "tool": "echo", "arguments": {"it": "$ref:first"}}
  ],
  "output_steps": ["second"]
}
`;

// What was typed lasts as long as the tab.
const kept = "stepjet.plan";

// edit leads to the editor with a text in it.
export function edit(text: string, tenant: string) {
  sessionStorage.setItem(kept, text);
  go("/plan" + (tenant ? "?tenant=" + encodeURIComponent(tenant) : ""));
}

// again leads there with the plan of a run.
export async function again(key: string, tenant: string) {
  const plan = await load<Value>(`runs/${encodeURIComponent(key)}/plan`);
  if (plan) edit(plan.text.includes("\n") ? plan.text : indent(plan.text), tenant);
}

export function planEditor() {
  document.title = "Plan · Stepjet";
  trouble.set(null);
  const who = me(), tenants = who && who !== "stranger" ? who.tenants : [];
  const tenant = signal(tenants.includes(param("tenant")) ? param("tenant") : tenants[0] ?? "");
  const dry = signal<Dry | null>(null), wrong = signal<Fault | null>(null), refused = signal<Fault | null>(null), chosen = signal(""), busy = signal(false), model = signal<Model | null>(null), changed = signal(0), shape = signal("");
  const id = h("input", { type: "text", "aria-label": "Run id", placeholder: "Run id (one is made)", autocomplete: "off" });
  let asked = 0;
  const look = async () => {
    const mine = ++asked, text = ed.text;
    let d: Dry | null = null, e: Fault | null = null;
    try {
      d = await ask<Dry>("validate?tenant=" + encodeURIComponent(tenant.peek()), text, true);
    } catch (f) {
      e = f as Fault;
    }
    if (mine !== asked || text !== ed.text) return;
    wrong.set(e);
    dry.set(d);
    ed.mark(d ? [...marks(text, d.problems, d.problem_places, "wrong"), ...marks(text, d.warnings, d.warning_places, "odd")] : []);
    model.set(d?.steps?.length ? new Model(sheetOf(d)) : null);
    shape.set(JSON.stringify(model.peek()?.sheet.steps.id ?? null)); // of other steps the whole is shown again
  };
  const soon = calm(250, () => void look());
  const ed = new Editor("Plan", sessionStorage.getItem(kept) ?? example, () => {
    sessionStorage.setItem(kept, ed.text);
    refused.set(null);
    soon();
  });
  effect(() => {
    tenant();
    void look();
  });
  ended(() => asked++);
  const run = () => {
    if (busy.peek() || !may(["operator"])) return;
    busy.set(true);
    ask<{ key: string }>(`runs?tenant=${encodeURIComponent(tenant.peek())}&run=${encodeURIComponent(id.value.trim())}`, ed.text, true).then(
      (r) => go(runAddress(r.key)), (e: Fault) => (busy.set(false), refused.set(e)));
  };
  const lead = (p: Place) => {
    const [from, to] = units(ed.text, [p.offset, p.end]);
    ed.lead(from, to);
  };
  const shared = { key: "", model, changed, step: chosen, asked: signal<Question[]>([]), choose: (s: string) => chosen.set(s), enter: () => undefined, retry: () => undefined };
  return h("main", { id: "main", tabindex: -1, class: "plan" },
    h("div", { class: "filters" },
      h("h1", null, "Plan"),
      tenants.length > 1 && h("select", { "aria-label": "Tenant", onchange: ((e: Event) => tenant.set((e.target as HTMLSelectElement).value)) as never },
        tenants.map((t) => h("option", { value: t, selected: t === tenant.peek() }, t))),
      id, h("button", { type: "button", onclick: () => {
        ed.text = indent(ed.text);
        sessionStorage.setItem(kept, ed.text);
        void look();
      } }, "Indent"),
      () => (may(["operator"]) ? h("button", { class: "primary", disabled: () => busy() || !!dry()?.problems.length, onclick: run }, "Run") : h("span", { class: "faint" }, "Running it takes an operator."))),
    h("div", { class: "halves" },
      h("div", { class: "half", onkeydown: ((e: KeyboardEvent) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && (e.preventDefault(), run())) as never }, ed.element),
      h("div", { class: "half told" },
        h("p", { role: "status", class: "verdict" }, () => (dry() ? verdict(dry()!) : wrong() ? "" : "Reading …")),
        () => refused() && fault(refused()!), () => wrong() && fault(wrong()!),
        () => dry() && [problems(dry()!.problems, dry()!.problem_places, lead, "wrong"), problems(dry()!.warnings, dry()!.warning_places, lead, "odd")],
        h("div", { class: "view drygraph", hidden: () => !model() }, () => {
          shape();
          return quietly(() => graph(shared));
        }),
        () => dry() && step(dry()!, chosen()),
        () => dry() && wants(dry()!))));
}

function marks(text: string, all: Problem[], places: Place[], kind: Mark["kind"]): Mark[] {
  const at = units(text, places.flatMap((p) => [p.offset, p.end]));
  return all.map((_, i) => ({ from: at[2 * i], to: at[2 * i + 1], kind }));
}

function verdict(d: Dry): string {
  if (d.problems.length) return count(d.problems.length, "problem");
  const waves = d.waves?.length ?? 0;
  return `It can be run: ${d.guessed ? "about " : ""}${count(d.calls, "call")} of ${count(d.tools?.length ?? 0, "tool")}, in ${count(waves, "wave")}.`;
}

function problems(all: Problem[], places: Place[], lead: (p: Place) => void, kind: string): Child {
  return all.slice(0, 100).map((p, i) => h("div", { class: "fault " + kind }, h("b", null, p.code),
    h("button", { class: "at", type: "button", onclick: () => lead(places[i]) }, `line ${places[i].line}, column ${places[i].column}`), (p.count ?? 0) > 1 && h("small", null, ` and ${p.count! - 1} more`),
    h("p", null, p.message), p.hint && h("p", { class: "hint" }, "→ ", p.hint)));
}

// sheetOf makes what the graph draws of a dry run: all that begins is still to come.
function sheetOf(d: Dry): Sheet {
  const s: Sheet = {
    key: "", run: "", tenant: "", status: "running", generation: 0, submitted: new Date().toISOString(), stats: {}, now: "", tools: [], statuses: [], codes: [],
    steps: { id: [], tool: [], status: [], code: [], attempts: [], ready: [], started: [], ended: [], decided: [], bytes: [], deps: [], parent: [] },
  };
  const at = new Map<string, number>(), c = s.steps;
  const place = (list: string[], name: string) => (list.includes(name) ? list.indexOf(name) : list.push(name) - 1);
  const add = (list: DryStep[], parent: number) => {
    for (const x of list) at.set(x.id, c.id.length + list.indexOf(x));
    const first = c.id.length;
    for (const x of list) {
      c.id.push(x.id);
      c.tool.push(place(s.tools, x.tool));
      c.status.push(place(s.statuses, x.status === "succeeded" ? "waiting" : x.status));
      c.deps.push((x.depends_on ?? []).flatMap((id) => at.get(id) ?? at.get(x.id.replace(/[^/]*$/, "") + id) ?? []));
      c.parent.push(parent);
      for (const times of [c.ready, c.started, c.ended, c.decided, c.code]) times.push(-1);
      c.attempts.push(0);
      c.bytes.push(0);
    }
    list.forEach((x, i) => x.steps && add(x.steps, first + i));
  };
  add(d.steps ?? [], -1);
  return s;
}

function step(d: Dry, id: string): Child {
  const x = d.steps?.find((s) => s.id === id);
  if (!x) return null;
  return h("section", { class: "card" }, h("h2", null, x.id), h("p", { class: "faint" }, [x.tool || "value", x.calls !== 1 && (x.guessed ? "about " : "") + count(x.calls, "call"), x.repeat, x.timeout_ms && "at most " + duration(x.timeout_ms)].filter(Boolean).join(" · ")),
    x.arguments !== undefined && [h("h3", null, "Arguments, with made-up results"), h("pre", { tabindex: 0 }, JSON.stringify(x.arguments, null, 2))]);
}

function wants(d: Dry): Child {
  return [
    d.tools?.length && h("table", { class: "tries" }, h("thead", null, h("tr", null, ["Tool", "Calls", "At once", "Limit"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", null, d.tools.map((t) => h("tr", null, h("td", null, t.tool), h("td", null, t.calls), h("td", null, t.at_once), h("td", null, t.limit))))),
    d.notices?.map((n) => h("p", { class: "note" }, (n.step || n.tool) && [h("b", null, n.step || n.tool), ": "], n.message)),
    d.doubts?.length && h("details", null, h("summary", null, count(d.doubts.length, "doubt"), ": what made-up results would have gone wrong with"), d.doubts.map((p) => h("p", null, h("b", null, p.step), " ", p.message))),
  ];
}
