// The registered tools: what their contracts say, and how much of each is wanted now.
import { ask, load, may, me, type Demand, type Figure, type Figures, type Host, type Tool, type Tools } from "./api";
import { append, effect, ended, h, keyed, signal } from "./dom";
import { count, duration } from "./format";
import { override } from "./override";
import { param, set } from "./state";

export function tools() {
  document.title = "Tools · Stepjet";
  const all = signal<Tools | null>(null), figures = signal<Figures | null>(null);
  const who = me(), tenants = who && who !== "stranger" ? who.tenants : [];
  const refresh = async () => {
    const t = document.hidden ? null : await load<Tools>("tools?tenant=" + encodeURIComponent(param("tenant") || tenants[0] || ""));
    if (t) all.set(t);
  };
  let asked = 0;
  const measure = async () => {
    const mine = ++asked, f = document.hidden ? null : await ask<Figures>("figures?tenant=" + encodeURIComponent(param("tenant") || tenants[0] || "")).catch(() => null);
    if (f && mine === asked) figures.set(f);
  };
  void refresh();
  void measure();
  const timer = setInterval(() => void refresh(), 5000), slower = setInterval(() => void measure(), 15_000);
  ended(() => (clearInterval(timer), clearInterval(slower)));
  const cards = h("div", { class: "cards" });
  const wanted = (t: Tools, name: string) => t.demand?.tools.find((d) => d.tool === name);
  const found = (t: Tools) => t.tools.filter((x) => (x.name + " " + (x.definition.description ?? "")).toLowerCase().includes(param("q").toLowerCase()))
    .sort((a, b) => (wanted(t, b.name)?.steps ?? 0) - (wanted(t, a.name)?.steps ?? 0) || a.name.localeCompare(b.name));
  effect(() => {
    const t = all(), f = figures();
    if (t) keyed(cards, found(t).map((x) => [x, wanted(t, x.name), f?.tools.find((y) => y.tool === x.name), t.hosts?.[x.name]] as Shown), ([x]) => x.name, () => card(() => void refresh()));
  });
  return h("main", { id: "main", tabindex: -1, class: "tools" }, h("h1", { class: "hidden" }, "Tools"),
    h("div", { class: "filters" },
      h("input", { type: "search", id: "search", placeholder: "Find a tool ( / )", "aria-label": "Find a tool", value: () => param("q"), oninput: ((e: Event) => set({ q: (e.target as HTMLInputElement).value }, true)) as never }),
      tenants.length > 1 && h("select", { "aria-label": "Tenant", onchange: ((e: Event) => (set({ tenant: (e.target as HTMLSelectElement).value }), figures.set(null), void refresh(), void measure())) as never },
        tenants.map((t) => h("option", { value: t, selected: () => t === (param("tenant") || tenants[0]) }, t)))),
    () => {
      const t = all();
      if (!t) return h("p", { class: "empty" }, "Reading …");
      return [
        t.unknown && h("p", { class: "note" }, "The demand is not known: ", t.unknown.message),
        (t.demand?.unsure?.length ?? 0) > 0 && h("p", { class: "note" }, `Of ${t.demand!.unsure!.length} of 64 partitions no orchestrator answered: the demand may be higher.`),
        t.more_hosts && h("p", { class: "note" }, "There are more workers than are listed: more may serve a tool than is said."),
        figures()?.others && h("p", { class: "note" }, `There are too many tools to count the calls of each: ${count(figures()!.others!.calls, "call")} of some are counted with no tool below.`),
        !found(t).length && h("p", { class: "empty" }, t.tools.length ? "No tool matches." : "No tool is registered: start a worker."),
      ];
    }, cards);
}

type Shown = [Tool, Demand | undefined, Figure | undefined, Host | undefined];

// card shows a tool, and shows it anew where it has changed, with what is opened left open.
function card(refresh: () => void): [HTMLElement, (s: Shown) => void] {
  const head = h("summary", null), numbers = h("div", null), body = h("div", null);
  let was = "";
  const fact = (name: string, value: string | undefined | false) => value && h("div", null, h("dt", null, name), h("dd", null, value));
  return [h("details", { class: "card" }, head, numbers, body), ([t, d, f, hosts]) => {
    head.replaceChildren(h("h2", null, t.name), h("p", null, t.definition.description ?? ""), h("div", { class: "side" }, d && load1(d, hosts), hosts && served(hosts), f && brief(f)));
    numbers.replaceChildren(...(f ? [took(f)] : []));
    const is = JSON.stringify(t);
    if (is === was) return;
    was = is;
    const c = t.contract as { timeout_ms?: number };
    body.replaceChildren();
    append(body, [
      h("dl", null, fact("Tenants", t.tenants?.length ? t.tenants.join(", ") : "all"), fact("Override", t.override ? "an operator changed it" : false),
        fact("Time-out", c.timeout_ms ? duration(c.timeout_ms) : undefined)),
      may(["operator"]) && h("p", { class: "copies" }, h("button", { onclick: () => override(t, refresh) }, "Override …")),
      h("h3", null, "Contract"), h("pre", { tabindex: 0 }, JSON.stringify(t.contract, null, 2)),
      h("h3", null, "Definition"), h("pre", { tabindex: 0 }, JSON.stringify(t.definition, null, 2))]);
  }];
}

// brief tells in a line what calls of a tool took and came to.
const brief = (f: Figure) => h("p", { class: "load" }, `p50 ${duration(f.p50_ms)}, p99 ${duration(f.p99_ms)}, ${f.per_minute.toLocaleString("en")}/min`, f.failed > 0 && h("b", { class: "warn" }, ` ${Math.max(1, Math.round((100 * f.failed) / f.calls))} % failed`));

const columns = ["Calls", "Per minute", "Executed p50", "Executed p99", "Waited p50", "Waited p99", "Failed"];

function took(f: Figure) {
  const codes = Object.entries(f.codes ?? {}).sort((a, b) => b[1] - a[1]);
  return h("section", null, h("h3", null, "Calls", h("small", null, " in the runs that ended within a day")),
    h("table", { class: "tries took" }, h("thead", null, h("tr", null, columns.map((x) => h("th", { scope: "col" }, x)))),
      h("tbody", null, h("tr", null, [f.calls.toLocaleString("en"), f.per_minute.toLocaleString("en"), duration(f.p50_ms), duration(f.p99_ms), duration(f.wait_p50_ms), duration(f.wait_p99_ms), f.failed.toLocaleString("en")].map((x, i) => h("td", { "data-word": columns[i] }, x))))),
    (f.asked ?? 0) > 0 && h("p", { class: "codes" }, `${count(f.asked!, "call")} stopped to ask a person.`),
    codes.length > 0 && h("p", { class: "codes" }, "Errors: ", codes.map(([code, n], i) => [i > 0 && ", ", h("a", { href: `/dead?tool=${encodeURIComponent(f.tool)}&code=${encodeURIComponent(code)}` }, code), ` ${n.toLocaleString("en")}`])));
}

// served tells how many workers serve a tool, as they say themselves.
function served(x: Host) {
  const held = (x.held ?? 0) > 0 && h("b", { class: "warn" }, ` ${count(x.held!, "worker")} ${x.held === 1 ? "holds" : "hold"} it`);
  return h("p", { class: "load workers" }, x.workers ? `${count(x.workers, "worker")}, ${count(x.slots, "slot")}` : h("b", { class: x.held ? "faint" : "warn" }, "no worker serves it"), held);
}

// load1 tells how much of a tool's limit is in use, and what waits for it.
function load1(d: Demand, hosts?: Host) {
  const used = h("i", { "data-status": d.leased >= d.limit ? "retrying" : "running" });
  used.style.width = `${Math.min(100, (100 * d.leased) / Math.max(1, d.limit))}%`;
  const waiting = d.held + d.queued;
  return h("div", { class: "load" },
    h("span", { class: "meter", role: "img", "aria-label": `${d.leased} of ${d.limit} in use` }, used),
    h("span", null, d.no_consumer ? "its queue is gone" : `${d.leased.toLocaleString("en")} of ${d.limit.toLocaleString("en")} at work`),
    h("span", { class: waiting ? "" : "faint" }, waiting ? `${count(waiting, "step")} waiting` : "nothing waits",
      waiting > 0 && d.oldest_ms ? `, the oldest for ${duration(d.oldest_ms)}` : ""),
    waiting > 0 && d.leased === 0 && !hosts && h("b", { class: "warn" }, "no worker?"));
}
