// Who lives: workers, by what they say of themselves, and orchestrators with what they own.
import { load, now, type Diagnosis, type Finding, type Staff, type StaffTool, type Worker } from "./api";
import { effect, ended, h, keyed, signal } from "./dom";
import { ago, count, duration, moment } from "./format";
import { param, set } from "./state";

// shownTools is how many tools of a worker stand in its line.
const shownTools = 6;

export function workers() {
  document.title = "Workers · Stepjet";
  const all = signal<Staff | null>(null);
  const refresh = async () => {
    const s = document.hidden ? null : await load<Staff>("workers");
    if (s) all.set(s);
  };
  void refresh();
  const timer = setInterval(() => void refresh(), 5000);
  ended(() => clearInterval(timer));
  const wanted = () => param("q").toLowerCase();
  const kept = () => (all()?.workers ?? []).filter((w) => [w.worker, w.user ?? "", w.host ?? "", w.version ?? "", ...w.tools.map((t) => t.tool)].some((s) => s.toLowerCase().includes(wanted())));
  const most = () => common([...(all()?.workers ?? []), ...(all()?.orchestrators ?? [])].map((x) => x.version ?? ""));
  const lines = h("tbody", null), owners = h("tbody", null);
  effect(() => keyed(lines, kept(), (w) => (w.user ?? "") + " " + w.worker, (w) => line(w, most)));
  effect(() => keyed(owners, all()?.orchestrators ?? [], (o) => o.id, (o) => {
    const parts = h("td", null), version = h("td", { class: "version" });
    return [h("tr", null, h("td", { class: "run" }, o.id), version, parts), (x) => {
      parts.textContent = x.leaving ? "leaving" : count(x.partitions.length, "partition") + ranges(x.partitions);
      tell(version, x.version, most());
    }];
  }));
  const versions = () => new Set([...(all()?.workers ?? []), ...(all()?.orchestrators ?? [])].map((x) => x.version).filter(Boolean));
  return h("main", { id: "main", tabindex: -1, class: "workers" }, h("h1", { class: "hidden" }, "Workers"),
    h("div", { class: "filters" }, h("input", { type: "search", id: "search", placeholder: "Find a worker or a tool ( / )", "aria-label": "Find a worker or a tool", value: () => param("q"), oninput: ((e: Event) => set({ q: (e.target as HTMLInputElement).value }, true)) as never })),
    () => {
      const s = all();
      if (!s) return h("p", { class: "empty" }, "Reading …");
      return [
        versions().size > 1 && h("p", { class: "note" }, `${versions().size} versions of Stepjet are at work. Upgrade orchestrators first, then workers.`),
        s.missed && h("p", { class: "note" }, "There are more workers than are listed."),
        h("p", { class: "faint" }, count(kept().length, "worker"), ", as they report themselves"),
        !kept().length && h("p", { class: "empty" }, s.workers.length ? "No worker matches." : "No worker is alive."),
      ];
    },
    h("table", { class: "list", hidden: () => !kept().length },
      h("thead", null, h("tr", null, ["Worker", "Version", "Up", "Busy", "Done", "Failed", "Tools"].map((t) => h("th", { scope: "col" }, t)))), lines),
    () => all()?.unknown && h("p", { class: "note" }, "Which orchestrators are alive is not known: ", all()!.unknown!.message),
    h("section", { hidden: () => !all()?.orchestrators?.length }, h("h2", null, "Orchestrators"),
      h("table", { class: "list" }, h("thead", null, h("tr", null, ["Orchestrator", "Version", "Owns"].map((t) => h("th", { scope: "col" }, t)))), owners)),
    examination());
}

// examination asks the doctor once somebody wants to know: it reads much.
function examination() {
  const said = signal<Diagnosis | null>(null), busy = signal(false);
  const look = () => {
    busy.set(true);
    void load<Diagnosis>("doctor").then((d) => (d && said.set(d), busy.set(false)));
  };
  return h("section", { class: "doctor" }, h("h2", null, "Doctor"),
    h("button", { disabled: () => busy(), onclick: look }, () => (busy() ? "Looking …" : "Look for problems")),
    h("div", { role: "status" }, () => {
      const d = said();
      return d && h("p", { class: "faint" }, `${ago(d.at)}: ${count(d.findings.filter((f) => f.health === "problem").length, "problem")}, ${count(d.findings.filter((f) => f.health === "note").length, "note")}; ${d.well} checks found nothing.`);
    }),
    () => said()?.findings.map(finding));
}

function finding(f: Finding) {
  return h("div", { class: f.health === "problem" ? "fault" : "note" }, h("b", null, [f.check, f.about].filter(Boolean).join(" · ")), h("p", null, f.found),
    f.expected && h("p", null, "expected: ", f.expected), f.means && h("p", null, f.means),
    f.fix && h("p", { class: "hint" }, "→ ", f.fixable ? "stepjet doctor --fix: " : "", f.fix));
}

function line(w: Worker, most: () => string): [HTMLElement, (w: Worker) => void] {
  const cell = (name: string) => h("td", { class: name });
  const version = cell("version"), up = cell("when"), busy = cell("number"), done = cell("number"), failed = cell("number"), tools = cell("hosts");
  const e = h("tr", null, h("td", { class: "run", title: w.worker }, h("b", null, w.worker), h("small", null, [w.user, w.host, w.pid && "process " + w.pid].filter(Boolean).join(" · "))),
    version, up, busy, done, failed, tools);
  return [e, (x) => {
    tell(version, x.version, most());
    up.textContent = x.leaving ? "leaving" : duration(now() - Date.parse(x.since));
    up.title = `since ${moment(x.since)}, heard ${ago(x.heard)}`;
    for (const [at, n, word] of [[busy, x.busy, "busy"], [done, x.done, "done"], [failed, x.failed, "failed"]] as const) {
      at.textContent = n.toLocaleString("en");
      at.dataset.word = word;
    }
    const list = [...x.tools].sort((a, b) => (b.busy ?? 0) - (a.busy ?? 0) || Number(!!b.held) - Number(!!a.held)), rest = list.length - shownTools + (x.more ?? 0);
    tools.replaceChildren(...list.slice(0, shownTools).map(host), ...(list.length > shownTools || x.more ? [h("span", { class: "faint" }, `and ${(list.length > shownTools ? rest : x.more!).toLocaleString("en")} more`)] : []));
  }];
}

const host = (t: StaffTool) => h("span", { class: "host" }, t.tool, " ", h("b", null, `${t.busy ?? 0}/${t.slots}`), t.held && h("b", { class: "warn" }, " held"));

// tell writes a version, and marks one that is not that of most.
function tell(at: HTMLElement, version: string | undefined, most: string) {
  const other = !!version && version !== most;
  at.replaceChildren(version || "–", ...(other ? [h("b", { class: "warn" }, " differs")] : []));
}

function common(all: string[]): string {
  const counts = new Map<string, number>();
  for (const v of all) if (v) counts.set(v, (counts.get(v) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? 1 : -1))[0]?.[0] ?? "";
}

// ranges writes numbers in order as ": 0–3, 7".
function ranges(all: number[]): string {
  const parts: string[] = [];
  for (let i = 0; i < all.length; i++) {
    const from = all[i];
    while (all[i + 1] === all[i] + 1) i++;
    parts.push(from === all[i] ? `${from}` : `${from}–${all[i]}`);
  }
  return parts.length ? ": " + parts.join(", ") : "";
}
