// An agent in the drawer of its step: what its rounds took, and a way to say something to it while it goes on.
import { ask, may, type Detail, type Fault, type Round } from "./api";
import { h, signal, type Child } from "./dom";
import { fault } from "./drawer";
import { duration } from "./format";
import type { Shared } from "./run";

// rounds is a table of what each round took, whose numbers lead to their planners.
export function rounds(m: Shared, d: Detail): Child {
  const all = d.rounds ?? [], usage = all.some((r) => r.usage), cost = all.some((r) => r.usage?.cost_usd);
  if (!all.length) return null;
  const heads = ["Round", "Planner", ...(usage ? ["Tokens in", "out"] : []), ...(cost ? ["Cost"] : []), "Calls"];
  return h("section", null, h("h3", null, "Rounds"),
    h("table", { class: "tries rounds" }, h("thead", null, h("tr", null, heads.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", null, all.map((r) => h("tr", null,
        h("td", null, h("button", { class: "link", "aria-label": `Round ${r.round}`, onclick: () => m.choose(`${d.id}/=${r.round}/=plan`) }, r.round)),
        h("td", null, planner(r)),
        usage && [r.usage?.input_tokens, r.usage?.output_tokens].map((n) => h("td", null, n === undefined ? "–" : n.toLocaleString("en"))),
        cost && h("td", null, r.usage?.cost_usd ? "$" + Number(r.usage.cost_usd.toFixed(6)) : "–"),
        h("td", null, r.refused ? `none: ${r.refused}` : r.calls, r.failed ? `, ${r.failed} did not succeed` : ""))))),
    d.whole && h("p", { class: "faint" }, d.whole));
}

function planner(r: Round) {
  if (r.unasked) return "not asked";
  if (r.planner !== "succeeded") return { ready: "waits for a worker", running: "writes", retrying: "is tried again" }[r.planner] ?? r.planner;
  return duration(r.took_ms ?? 0) + ((r.asked ?? 0) > 1 ? `, call ${r.asked}` : "");
}

// Draft is what is being written to an agent. It has an id once it was sent, so that what is sent again is said once.
interface Draft { text: string; id: string; interrupt: boolean }

// speaking writes to agents; what was written is kept while one looks elsewhere. said is called when something stands.
export function speaking(m: Shared, said: () => void) {
  const drafts = new Map<string, Draft>();
  return (step: string): Child => {
    if (!may(["operator"])) return null;
    const draft = drafts.get(step) ?? { text: "", id: "", interrupt: false };
    drafts.set(step, draft);
    const wrong = signal<Fault | null>(null), busy = signal(false), empty = signal(!draft.text.trim()), stands = signal("");
    const area = h("textarea", { rows: 2, "aria-label": "Say something to this agent", placeholder: "Say something to this agent", oninput: (() => {
      draft.text = area.value;
      draft.id = "";
      empty.set(!draft.text.trim());
      stands.set("");
    }) as never, onkeydown: ((e: KeyboardEvent) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && (e.preventDefault(), send(false))) as never });
    area.value = draft.text;
    const send = (interrupt: boolean) => {
      if (busy.peek() || empty.peek()) return;
      if (!draft.id || draft.interrupt !== interrupt) draft.id = fresh();
      draft.interrupt = interrupt;
      busy.set(true);
      wrong.set(null);
      ask<{ round?: number }>(`runs/${encodeURIComponent(m.key)}/say`, { step, id: draft.id, text: draft.text, interrupt, generation: m.model.peek()!.sheet.generation }).then((r) => {
        Object.assign(draft, { text: "", id: "" });
        area.value = "";
        empty.set(true);
        busy.set(false);
        stands.set(r.round === undefined ? "It was said. The planner is told with its next request." : `It was said. The planner of round ${r.round} is told.`);
        area.focus();
        said();
      }, (e: Fault) => (wrong.set(e), busy.set(false)));
    };
    return h("form", { class: "speak", onsubmit: ((e: Event) => (e.preventDefault(), send(false))) as never }, area,
      () => wrong() && fault(wrong()!), h("p", { class: "faint", role: "status", hidden: () => !stands() }, stands),
      h("p", { class: "acts" },
        h("button", { class: "primary", disabled: () => busy() || empty() }, "Say it"),
        h("button", { class: "danger", type: "button", disabled: () => busy() || empty(), title: "What runs of its round is cancelled, and the planner is asked anew", onclick: () => send(true) }, "Say it and interrupt the round")));
  };
}

// fresh is an id of a word; a page that is not served over TLS has no randomUUID.
const fresh = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
