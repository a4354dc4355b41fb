// What runs wait for people to say: a list, and one question with its answer.
import { ask, load, may, me, now, trouble, type Fault, type Question } from "./api";
import { effect, ended, h, keyed, signal, type Child } from "./dom";
import { fault, part } from "./drawer";
import { choice, field, json, Unfit, type Field } from "./form";
import { badge, count, duration, indent, moment, when } from "./format";
import { param, runAddress, set } from "./state";

interface Questions { questions: Question[]; more: boolean }

export const questionAddress = (key: string, step: string) => "/questions/" + key + "?step=" + encodeURIComponent(step);

// about says what of a run a question is about.
export const about = (q: Question) => (q.revision ? `amendment ${q.revision} of ` : q.round !== undefined ? `round ${q.round} of ` : "") + (q.step === "=" ? "the plan" : q.step);

export function questions() {
  document.title = "Questions · Stepjet";
  const all = signal<Questions | null>(null);
  const who = me(), tenants = who && who !== "stranger" ? who.tenants : [];
  const refresh = async () => {
    const q = document.hidden ? null : await load<Questions>("questions");
    if (q) all.set(q);
  };
  void refresh();
  const timer = setInterval(() => void refresh(), 3000);
  ended(() => clearInterval(timer));
  const kept = () => (all()?.questions ?? []).filter((q) => (!param("tenant") || q.tenant === param("tenant")) &&
    [q.run, q.step, q.text ?? "", q.tool ?? ""].some((s) => s.toLowerCase().includes(param("q").toLowerCase())));
  const body = h("tbody", null);
  effect(() => keyed(body, kept(), (q) => q.key + " " + q.step + " " + q.digest, row));
  return h("main", { id: "main", tabindex: -1, class: "questions" }, h("h1", { class: "hidden" }, "Questions"),
    h("div", { class: "filters" },
      h("input", { type: "search", id: "search", placeholder: "Find a question ( / )", "aria-label": "Find a question", value: () => param("q"), oninput: ((e: Event) => set({ q: (e.target as HTMLInputElement).value }, true)) as never }),
      tenants.length > 1 && h("select", { "aria-label": "Tenant", onchange: ((e: Event) => set({ tenant: (e.target as HTMLSelectElement).value })) as never },
        h("option", { value: "" }, "Every tenant"), tenants.map((t) => h("option", { value: t, selected: () => param("tenant") === t }, t)))),
    () => {
      const a = all();
      if (!a) return h("p", { class: "empty" }, "Reading …");
      if (!a.questions.length) return h("p", { class: "empty" }, "No run waits for a person.");
      return h("p", { class: "faint" }, count(kept().length, "question"), a.more && ": those that were asked first; there are more.", ", the longest first");
    },
    h("table", { class: "list", hidden: () => !kept().length },
      h("thead", null, h("tr", null, ["Question", "Asks for", "Run", "Waits", "Until"].map((t) => h("th", { scope: "col" }, t)))), body));
}

function row(q: Question): [HTMLElement, () => void] {
  const since = h("td", { class: "when", title: moment(q.since) }), until = h("td", { class: "when", title: q.until && moment(q.until) });
  const e = h("tr", null,
    h("td", { class: "text" }, h("a", { href: questionAddress(q.key, q.step) }, q.text || (q.kind === "ask" ? "A value" : "An approval")), h("small", null, [about(q), q.tool].filter(Boolean).join(" · "))),
    h("td", null, q.kind !== "ask" ? "an approval" : q.attempt ? "an answer to its tool" : "a value"),
    h("td", { class: "run" }, h("a", { href: runAddress(q.key, q.step === "=" ? "" : q.step) }, q.run), h("small", null, q.tenant)), since, until);
  return [e, () => {
    since.textContent = duration(now() - Date.parse(q.since));
    until.textContent = q.until ? left(q) : "";
  }];
}

// left says for how long a question is open still, and what comes then.
function left(q: Question): string {
  const ms = Date.parse(q.until!) - now();
  return `${ms > 0 ? duration(ms) + " left" : "over"}, then ${q.on_timeout ? { approve: "approved", reject: "rejected" }[q.on_timeout] ?? q.on_timeout : "it fails"}`;
}

// question is one: what is asked, what is shown for it, and the ways to answer.
export function question(key: string) {
  document.title = "Question · Stepjet";
  const step = param("step") || "=", one = signal<Question | null>(null), gone = signal<Fault | null>(null), stands = signal<string>("");
  ask<Question>(`runs/${encodeURIComponent(key)}/questions/${encodeURIComponent(step)}`).then((q) => (trouble.set(null), one.set(q)), (e: Fault) => gone.set(e));
  const other = signal(""); // what became of it while one looked: nothing, another question stands in its place, or it was answered
  let listed = false;
  const timer = setInterval(() => {
    const q = one.peek();
    if (!q || stands.peek() || other.peek() || document.hidden) return;
    ask<Questions>("questions?run=" + encodeURIComponent(key)).then((l) => {
      const now = l.questions.find((x) => x.step === q.step && (x.revision ?? 0) === (q.revision ?? 0));
      listed ||= now?.digest === q.digest; // the list may be of a moment before
      if (listed && now?.digest !== q.digest && !l.more && one.peek() === q && !stands.peek()) other.set(now ? "Something else is asked in its place by now." : "It is asked no more: somebody answered, or the run has gone on without an answer.");
    }, () => undefined);
  }, 3000);
  ended(() => clearInterval(timer));
  return h("main", { id: "main", tabindex: -1, class: "question" },
    () => other() && !stands() && h("div", { class: "note", role: "status" }, other(), " ", h("a", { href: runAddress(key, step === "=" ? "" : step) }, "Follow the run"), " · ", h("a", { href: "/questions" }, "Other questions")),
    h("p", { class: "crumbs" }, h("a", { href: "/questions" }, "Questions"), " / ", h("a", { href: runAddress(key, step === "=" ? "" : step) }, "its run")),
    () => {
      const q = one(), e = gone();
      if (e) return [h("h1", null, "Nobody is asked this any more"), fault(e), h("p", null, h("a", { href: runAddress(key, step === "=" ? "" : step) }, "What became of it"))];
      return q ? shown(q, stands) : h("p", { class: "empty" }, "Reading …");
    });
}

function shown(q: Question, stands: { (): string; set(v: string): void }): Child[] {
  const fact = (name: string, value: Child) => value && [h("dt", null, name), h("dd", null, value)];
  return [
    h("div", { class: "title" }, h("h1", null, q.text || (q.kind === "ask" ? "A value is asked for" : "An approval is asked for")), badge("asking")),
    h("dl", null,
      fact("Run", h("a", { href: runAddress(q.key) }, q.run)), fact("About", about(q)), fact("Tool", q.tool), fact("Items", q.items),
      fact("Asked by", q.attempt && `the tool, in the middle of attempt ${q.attempt}; the answer begins the next`),
      fact("Asked", when(q.since)), fact("Until", q.until && `${moment(q.until)}: ${left(q)}`),
      fact("Wanted by", q.by && q.by + (q.verified ? "" : ", as it says of itself")), fact("Because", q.reason),
      fact("Digest", h("code", { title: "Your answer counts for this, and for nothing that may be asked in its place" }, q.digest))),
    part("Change", q.change, "h2"), part("What would run", q.plan, "h2"), q.kind === "approval" && !q.arguments && q.step === "=" && !q.revision && h("p", { class: "note" }, "It is about the whole plan: ", h("a", { href: runAddress(q.key) }, "look at its steps"), "."),
    () => {
      if (stands()) return h("div", { class: "note", role: "status" }, stands(), " ", h("a", { href: runAddress(q.key, q.step === "=" ? "" : q.step) }, "Follow the run"), " · ", h("a", { href: "/questions" }, "Other questions"));
      if (!may(q.kind === "ask" ? ["operator", "approver"] : ["approver"])) return [part("Arguments", q.arguments, "h2"), h("p", { class: "note" }, q.kind === "ask" ? "Answering takes an operator or an approver." : "Approving takes an approver.")];
      return q.kind === "ask" ? value(q, stands) : approval(q, stands);
    },
  ];
}

// sending says something to a question, and shows what came of it; what is a mistake of who answers as well.
function sending(q: Question, stands: { set(v: string): void }) {
  const wrong = signal<Fault | null>(null), busy = signal(false);
  const send = (more: () => Record<string, unknown>) => {
    try {
      busy.set(true);
      wrong.set(null);
      ask<{ decision: string; by: string; already: boolean }>(`runs/${encodeURIComponent(q.key)}/${q.kind === "ask" ? "answer" : "approve"}`, { step: q.step, digest: q.digest, generation: q.generation, revision: q.revision ?? 0, ...more() }).then(
        (a) => stands.set(`It was ${a.decision}${a.by ? " by " + a.by : ""}${a.already ? " already" : ""}.`), (e: Fault) => (wrong.set(e), busy.set(false)));
    } catch (e) {
      busy.set(false);
      wrong.set({ code: "invalid_value", message: e instanceof Unfit ? e.message : String(e) });
    }
  };
  return { send, wrong: () => wrong() && fault(wrong()!), busy };
}

function approval(q: Question, stands: { set(v: string): void }) {
  const { send, wrong, busy } = sending(q, stands), reason = h("input", { type: "text", maxlength: 2000 });
  const edits = signal<Field | null>(null), instead = signal<Field | null>(null);
  const editable = q.arguments && !q.arguments.cut && q.arguments.text && !q.items, whole = q.step === "=" || q.revision || q.round !== undefined;
  return h("form", { class: "answer", onsubmit: ((e: Event) => (e.preventDefault(), send(() => ({
    reason: reason.value, ...(edits.peek() && { arguments: edits.peek()!.json() ?? "" }), ...(instead.peek() && { value: instead.peek()!.json() ?? "" }),
  })))) as never },
    () => (edits() ? edits()!.element : !instead() && part("Arguments", q.arguments, "h2")), () => instead()?.element,
    !whole && h("p", { class: "copies" },
      editable && h("button", { type: "button", hidden: () => !!instead(), onclick: () => edits.set(edits.peek() ? null : json("Arguments to call with", indent(q.arguments!.text))) }, () => (edits() ? "Keep the arguments" : "Edit the arguments")),
      h("button", { type: "button", hidden: () => !!edits(), onclick: () => instead.set(instead.peek() ? null : json("Result, in place of what the tool would return", "")) }, () => (instead() ? "Call the tool" : "Don't call it: give a result instead"))),
    h("label", { class: "field" }, h("span", null, "Reason"), h("small", { class: "faint" }, q.round === undefined ? "for whoever reads the run later" : "for whoever reads the run later; where you reject, its planner is told it"), reason), wrong,
    h("p", { class: "acts" },
      h("button", { class: "primary", disabled: () => busy() }, () => (edits() ? "Approve with these" : instead() ? "Give this result" : "Approve")),
      h("button", { class: "danger", type: "button", disabled: () => busy(), onclick: () => send(() => ({ reject: true, reason: reason.value })) }, "Reject")));
}

function value(q: Question, stands: { set(v: string): void }) {
  const { send, wrong, busy } = sending(q, stands), reason = h("input", { type: "text", maxlength: 2000 });
  const form = () => (q.choices?.length ? choice("Answer", q.choices) : q.schema && typeof q.schema === "object" ? field(q.schema, "Answer", true) : json("Answer, as JSON", ""));
  const at = signal(form()), raw = signal(false);
  const sent = () => {
    const text = at.peek().json();
    if (text === undefined) throw new Unfit("Answer: there is none yet");
    return { value: text, reason: reason.value };
  };
  return h("form", { class: "answer", onsubmit: ((e: Event) => (e.preventDefault(), send(sent))) as never },
    () => at().element,
    h("p", { class: "copies" }, h("button", { type: "button", onclick: () => (raw.set(!raw.peek()), at.set(raw.peek() ? json("Answer, as JSON", "") : form())) }, () => (raw() ? "Back to the form" : "Write it as JSON"))),
    q.schema !== undefined && h("details", null, h("summary", null, "Its schema"), h("pre", { tabindex: 0 }, JSON.stringify(q.schema, null, 2))),
    h("label", { class: "field" }, h("span", null, "Reason"), h("small", { class: "faint" }, "for whoever reads the run later"), reason), wrong,
    h("p", { class: "acts" }, h("button", { class: "primary", disabled: () => busy() }, "Answer"),
      h("button", { class: "danger", type: "button", disabled: () => busy(), onclick: () => send(() => ({ reject: true, reason: reason.value })) }, "Decline")));
}

// waits shows, above a run, what it waits for people to say.
export function waits(all: Question[]) {
  return all.length > 0 && h("div", { class: "note", role: "status" }, all.length === 1 ? "A person is asked: " : `${count(all.length, "question")} wait for people: `,
    all.slice(0, 5).map((q, i) => [i > 0 && " · ", h("a", { href: questionAddress(q.key, q.step) }, q.text || about(q))]), all.length > 5 && h("span", { class: "faint" }, ` and ${all.length - 5} more`));
}

