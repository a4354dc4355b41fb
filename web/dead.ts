// Dead letters: calls that used up their attempts, by tool and by what went wrong.
import { ask, load, may, now, type Fault, type Letter } from "./api";
import { confirm } from "./confirm";
import { effect, ended, h, keyed, signal } from "./dom";
import { ago, count, moment } from "./format";
import { go, param, runAddress, set } from "./state";

export function dead() {
  document.title = "Dead letters · Stepjet";
  const all = signal<{ letters: Letter[]; more: boolean } | null>(null);
  const refresh = async () => {
    const l = document.hidden ? null : await load<{ letters: Letter[]; more: boolean }>("dead");
    if (l) all.set(l);
  };
  void refresh();
  const timer = setInterval(() => void refresh(), 10_000);
  ended(() => clearInterval(timer));
  const kept = () => (all()?.letters ?? []).filter((l) => (!param("tool") || l.tool === param("tool")) && (!param("code") || l.error.code === param("code")));
  const body = h("tbody", null);
  effect(() => keyed(body, kept(), (l) => l.key + " " + l.step + " " + l.failed, row));
  const chips = (name: "tool" | "code", of: (l: Letter) => string) => () => {
    const counts = new Map<string, number>();
    for (const l of all()?.letters ?? []) counts.set(of(l), (counts.get(of(l)) ?? 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([text, n]) =>
      h("button", { type: "button", class: "chip", "aria-pressed": () => String(param(name) === text), onclick: () => set({ [name]: param(name) === text ? "" : text }) }, text, h("b", null, n.toLocaleString("en"))));
  };
  return h("main", { id: "main", tabindex: -1, class: "dead" }, h("h1", { class: "hidden" }, "Dead letters"),
    h("div", { class: "filters" }, h("div", { class: "chips", role: "group", "aria-label": "Tool" }, chips("tool", (l) => l.tool)),
      h("div", { class: "chips", role: "group", "aria-label": "Error" }, chips("code", (l) => l.error.code))),
    () => {
      const a = all();
      if (!a) return h("p", { class: "empty" }, "Reading …");
      if (!a.letters.length) return h("p", { class: "empty" }, "There are no dead letters: no call has used up its attempts.");
      return h("p", { class: "faint" }, count(kept().length, "dead letter"), a.more && ": the newest; there are more.",
        may(["operator"]) && kept().length > 1 && [" ", h("button", { onclick: () => several(kept(), refresh) }, "Call these again …")]);
    },
    h("table", { class: "list", hidden: () => !kept().length },
      h("thead", null, h("tr", null, ["Tool", "Error", "Step", "Run", "Attempts", "Failed"].map((t) => h("th", { scope: "col" }, t)), h("td", null))), body));
}

function row(l: Letter): [HTMLElement, () => void] {
  const at = h("td", { class: "when", title: moment(l.failed) });
  const e = h("tr", null, h("td", null, l.tool),
    h("td", { class: "why" }, h("b", null, l.error.code), " ", l.error.message, l.error.hint && h("small", null, "→ ", l.error.hint)),
    h("td", null, h("a", { href: runAddress(l.key, l.step) }, l.step)),
    h("td", { class: "run" }, h("a", { href: runAddress(l.key) }, l.run), h("small", null, l.tenant)),
    h("td", { class: "attempts", "data-word": l.attempts === 1 ? "attempt" : "attempts" }, l.attempts), at, h("td", { class: "acts" }, may(["operator"]) && h("button", { onclick: () => again(l) }, "Call again …")));
  return [e, () => (now(), (at.textContent = ago(l.failed)))];
}

// several makes the calls of all letters that are shown again, by one request: what was seen, not what came since. Whoever
// leaves before it is answered leaves the server to it; a call that was made before is found, and not made twice.
function several(letters: Letter[], refresh: () => Promise<void>) {
  const text = "For each, a new run calls its tool with exactly the same arguments. A letter goes once that has succeeded.";
  confirm(`Make ${count(letters.length, "call")} again?`, text, "Call them again", async () => {
    const { refused = [] } = await ask<{ called: number; refused?: { error: Fault }[] }>("dead/retry", { letters: letters.map(({ key, step }) => ({ key, step })) });
    await refresh();
    if (refused.length) throw { ...refused[0].error, message: `${count(refused.length, "call")} could not be made. The first: ${refused[0].error.message}` };
  });
}

function again(l: Letter) {
  confirm("Make this call again?", `A new run calls ${l.tool} with exactly the same arguments. The letter goes once that has succeeded.`, "Call again", async () => {
    const run = await ask<{ key: string }>("dead/retry", { key: l.key, step: l.step });
    go(runAddress(run.key));
  });
}
