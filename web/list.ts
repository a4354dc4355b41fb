// The list of runs.
import { ask, away, calm, follow, load, me, now, seen, tick, trouble, type Head, type Line, type List, type Question, type Tools } from "./api";
import { effect, ended, h, keyed, signal } from "./dom";
import { ago, badge, count, duration, marks, moment, span } from "./format";
import { about, questionAddress } from "./questions";
import { param, place, runAddress, set } from "./state";

const statuses = ["running", "failed", "partial", "expired", "cancelled", "rejected", "succeeded"];
const times: [string, string, number][] = [["", "Any time", 0], ["1h", "Last hour", 1], ["24h", "Last day", 24], ["72h", "Last 3 days", 72]];

function query(): string {
  const q = new URLSearchParams();
  for (const name of ["status", "tenant", "tool", "q", "order", "after"]) if (param(name)) q.set(name, param(name));
  const hours = times.find(([name]) => name === param("since"))?.[2];
  if (hours) q.set("from", new Date(Math.floor(now() / 60000) * 60000 - hours * 3600e3).toISOString());
  return q.toString();
}

export function runs() {
  document.title = "Runs · Stepjet";
  const list = signal<List | null>(null);
  let asked = 0;
  const refresh = async () => {
    const mine = ++asked;
    const next = await load<List>("runs?" + query());
    if (next && mine === asked) {
      const were = new Map(list.peek()?.runs.map((r) => [r.key, r]));
      list.set({ ...next, runs: next.runs.map((r) => (r.status === "running" ? { ...were.get(r.key), waits: undefined, ...r } : r)) }); // what was counted stays until it is anew
      if (!were.size) void wonder();
    }
  };
  effect(() => {
    place();
    void refresh();
  });
  const soon = calm(500, () => void refresh());
  ended(follow("", { reset: soon, runs: soon }));
  const fill = async () => { // what goes on is counted by who has it at work
    const keys = document.hidden || away.peek() ? [] : (list.peek()?.runs ?? []).filter((r) => r.status === "running").map((r) => r.key).slice(0, 100);
    const told = keys.length ? await ask<{ heads: Record<string, Head> }>("heads", { keys }).catch(() => null) : null, l = list.peek();
    if (!told || !l) return;
    list.set({ ...l, runs: l.runs.map((r) => {
      const t = r.status === "running" && told.heads[r.key];
      return t ? { ...r, steps: t.stats.steps, succeeded: t.stats.succeeded, failed: t.stats.failed, skipped: t.stats.skipped + (t.stats.cancelled ?? 0), tools: t.tools, failed_at: t.failed, doing: t.doing, since: t.since } : r;
    }) });
  };
  const wonder = async () => { // what goes on may wait for a person
    if (document.hidden || away.peek() || !list.peek()?.runs.some((r) => r.status === "running")) return;
    const told = await ask<{ questions: Question[] }>("questions").catch(() => null), l = list.peek();
    if (!told || !l) return;
    const first = new Map([...told.questions].reverse().map((q) => [q.key, { step: q.step, text: q.text || about(q) }]));
    if (l.runs.some((r) => r.asks || first.has(r.key))) list.set({ ...l, runs: l.runs.map((r) => ({ ...r, asks: r.status === "running" ? first.get(r.key) : undefined })) });
  };
  const wondering = setInterval(() => void wonder(), 3000);
  ended(() => clearInterval(wondering));
  const counted = setInterval(() => void fill(), 1000);
  ended(() => clearInterval(counted));

  const body = h("tbody", { onkeydown: ((e: KeyboardEvent) => arrows(e)) as never });
  effect(() => (tick(), away(), keyed(body, list()?.runs ?? [], (r) => r.key, row))); // what tells times does so anew
  return h("main", { id: "main", tabindex: -1, class: "runs" },
    h("h1", { class: "hidden" }, "Runs"),
    filters(list),
    () => {
      const l = list();
      if (!l) return !trouble() && h("p", { class: "empty" }, "Reading …");
      return h("div", null,
        l.trouble && !away() && h("p", { class: "note" }, "What is shown may be old: ", l.trouble.message),
        l.reading && h("p", { class: "note", role: "status" }, "Reading the history: ", count(l.matched, "run"), " so far."),
        !l.runs.length && !l.reading && h("p", { class: "empty" }, place().query.size ? "No run matches." : nothing()));
    },
    h("table", { class: "list", hidden: () => !list()?.runs.length },
      h("thead", null, h("tr", null, ...["Status", "Run", "Tools", "Steps", "First failed, at work", "Submitted", "Took"].map((t) => h("th", { scope: "col" }, t)))),
      body),
    () => {
      const l = list();
      return l && l.runs.length > 0 && h("nav", { class: "pages", "aria-label": "Pages" },
        h("span", null, count(l.matched, "run")),
        param("after") && h("button", { onclick: () => set({ after: "" }) }, "First page"),
        l.next && h("button", { onclick: () => (set({ after: l.next! }), scrollTo(0, 0)) }, "Next page"));
    });
}

function nothing() {
  return h("span", null, "No run yet. Submit one: ", h("code", null, "stepjet submit plan.json"));
}

function filters(list: () => List | null) {
  const who = me();
  const tenants = who && who !== "stranger" ? who.tenants : [];
  const tools = h("datalist", { id: "tools" });
  void ask<Tools>("tools?tenant=" + encodeURIComponent(param("tenant") || tenants[0] || "")).then(
    (t) => t.tools.forEach((x) => tools.append(h("option", { value: x.name }))), () => {});
  const typed = (name: string) => {
    let timer = 0;
    return (e: Event) => {
      clearTimeout(timer);
      const value = (e.target as HTMLInputElement).value.trim();
      timer = window.setTimeout(() => set({ [name]: value, after: "" }, true), 150);
    };
  };
  const chosen = (name: string) => (e: Event) => set({ [name]: (e.target as HTMLSelectElement).value, after: "" });
  return h("form", { class: "filters", role: "search", onsubmit: (e: Event) => e.preventDefault() },
    h("input", { type: "search", id: "search", placeholder: "Search run ids ( / )", "aria-label": "Search run ids", value: () => param("q"), oninput: typed("q") as never }),
    tenants.length > 1 && h("select", { "aria-label": "Tenant", onchange: chosen("tenant") as never },
      h("option", { value: "" }, "All tenants"), tenants.map((t) => h("option", { value: t, selected: () => t === param("tenant") }, t))),
    h("input", { list: "tools", class: "tool", placeholder: "Tool", "aria-label": "Tool", value: () => param("tool"), oninput: typed("tool") as never }), tools,
    h("select", { "aria-label": "Submitted", onchange: chosen("since") as never },
      times.map(([value, text]) => h("option", { value, selected: () => value === param("since") }, text))),
    h("select", { "aria-label": "Order", onchange: chosen("order") as never },
      h("option", { value: "" }, "Needs attention first"), h("option", { value: "newest", selected: () => param("order") === "newest" }, "Newest first")),
    h("div", { class: "chips", role: "group", "aria-label": "Status" }, statuses.map((s) => chip(s, list))));
}

function chip(status: string, list: () => List | null) {
  const on = () => param("status").split(",").includes(status);
  const press = () => {
    const now = new Set(param("status").split(",").filter(Boolean));
    if (!now.delete(status)) now.add(status);
    set({ status: [...now].join(","), after: "" });
  };
  return h("button", { type: "button", class: "chip", "data-status": status, "aria-pressed": () => String(on()), onclick: press },
    h("i", { "aria-hidden": "true" }, marks[status]), status, h("b", null, () => (list()?.counts[status] ?? 0).toLocaleString("en")));
}

function row(first: Line): [HTMLElement, (r: Line) => void] {
  const r = signal(first), at = signal(now()), last = signal(seen()); // signals of its own end with it
  const took = () => duration((r().finished ? Date.parse(r().finished!) : last()) - Date.parse(r().submitted));
  const e = h("tr", { class: () => (r().attention ? "attention" : "") },
    h("td", { class: "status" }, () => badge(r().status)),
    h("td", { class: "run" }, h("a", { href: runAddress(first.key) }, first.run), h("small", null, () => [first.tenant, r().retry_of && " · retry of " + r().retry_of])),
    h("td", { class: "tools" }, () => {
      const tools = r().tools ?? [];
      return h("span", { title: tools.join(", ") }, tools.slice(0, 3).join(", "), tools.length > 3 && ` +${tools.length - 3}`);
    }),
    h("td", { class: "steps" }, () => bar(r())),
    h("td", { class: "at" }, () => [r().failed_at && h("a", { href: runAddress(first.key, r().failed_at) }, r().failed_at),
      r().asks ? h("small", { title: r().asks!.text }, "asks a person: ", h("a", { href: questionAddress(first.key, r().asks!.step) }, r().asks!.text)) :
      r().waits ? h("small", null, h("a", { href: runAddress(first.key, r().waits!.step) }, r().waits!.step), ` waits for a worker of ${r().waits!.tool} for `, () => r().waits ? span(last() - Date.parse(r().waits!.since)) : "") :
      r().status === "running" && r().doing && h("small", null, h("a", { href: runAddress(first.key, r().doing) }, r().doing), () => r().since && ` for ${span(last() - Date.parse(r().since!))}`)]),
    h("td", { class: "when", title: moment(first.submitted) }, () => (at(), ago(first.submitted))),
    h("td", { class: "took" }, took));
  return [e, (next) => (r.set(next), at.set(now()), last.set(seen()))];
}

// bar tells how a run's steps ended.
function bar(r: Line) {
  if (!r.steps) return h("span", { class: "faint" }, r.status === "running" ? "under way" : "–");
  const parts: [string, number][] = [["succeeded", r.succeeded ?? 0], ["failed", r.failed ?? 0], ["skipped", r.skipped ?? 0]];
  const text = parts.filter(([, n]) => n).map(([what, n]) => `${n} ${what}`).join(", ");
  if (r.status === "running") parts.push(["waiting", Math.max(0, r.steps - (r.succeeded ?? 0) - (r.failed ?? 0) - (r.skipped ?? 0))]);
  return h("span", { class: "bar", title: text, role: "img", "aria-label": `${r.steps} steps: ${text || "none is over"}` },
    h("b", null, r.steps.toLocaleString("en")),
    h("span", null, parts.map(([what, n]) => {
      const part = h("i", { "data-status": what });
      part.style.flexGrow = String(n);
      return n > 0 && part;
    })));
}

// arrows moves the focus from run to run.
function arrows(e: KeyboardEvent) {
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
  if (!step) return;
  const links = [...(e.currentTarget as Element).querySelectorAll<HTMLElement>("td.run a")];
  const row = (e.target as Element).closest("tr");
  const at = links.findIndex((a) => a.closest("tr") === row);
  links[Math.max(0, Math.min(links.length - 1, at + step))]?.focus();
  e.preventDefault();
}

addEventListener("keydown", (e) => {
  if (e.key !== "/" || (e.target as Element).closest("input,textarea,select")) return;
  const search = document.getElementById("search");
  if (search) {
    e.preventDefault();
    search.focus();
  }
});

