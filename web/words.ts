// What an agent told people, what was said to it, and which answers of its planner were refused, round by round.
import type { Detail, Message, Refused, Said } from "./api";
import { effect, h, signal, type Child } from "./dom";
import { count, indent, moment, problem, size } from "./format";
import { over } from "./model";
import type { Shared } from "./run";

// words shows all of it with an agent's step, and with the planner of a round those of that round.
export function words(m: Shared, d: Detail): Child {
  const { said = [], messages = [], refused = [] } = d, planner = d.id.endsWith("/=plan");
  const rounds = [...new Set([...said, ...messages, ...refused].map((x) => x.round))].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  const title = [messages.length && "What " + (planner ? "its agent" : "it") + " told people", said.length && "What was said to " + (planner ? "its agent" : "it"), refused.length && (planner ? "Its answer was refused" : "Refused answers of its planner")];
  return rounds.length > 0 && h("section", { class: "words" }, h("h3", null, title.filter(Boolean).join(" · ")),
    d.messages_left_out && h("p", { class: "faint" }, count(d.messages_left_out, "message"), " before are not listed: there are too many."), rounds.map((round) => [
    !planner && h("h4", null, heading(m, d, round)),
    said.filter((w) => w.round === round).map(word), messages.filter((x) => x.round === round).map((x) => message(m, x)), refused.filter((x) => x.round === round).map(refusal),
  ]));
}

// heading names a round, which leads to its planner, and says where nobody was told there. It follows the run: what was read of the
// agent may be of a moment of which the page has not heard yet.
function heading(m: Shared, d: Detail, round: number | undefined): Child {
  if (round === undefined) return over(d.status) ? "No round was told of it" : "Not told yet: the next round will be";
  const planner = `${d.id}/=${round}/=plan`, name = `Round ${round}`, there = signal(false);
  const row = (step: string) => (m.changed(), m.model()?.rows.get(step));
  effect(() => there.set(row(planner) !== undefined));
  const unasked = () => {
    const model = m.model()!, i = row(planner), agent = row(d.id);
    if (i === undefined) return agent !== undefined && over(model.status(agent));
    return over(model.status(i)) && model.status(i) !== "succeeded" && !model.sheet.steps.attempts[i];
  };
  return [() => (there() ? h("button", { class: "link", onclick: () => m.choose(planner) }, name) : name), () => unasked() && ", whose planner was not asked"];
}

function word(w: Said) {
  return h("blockquote", null, h("p", { class: "by" }, h("b", null, w.by || "somebody"), w.by && !w.verified && h("small", null, " (unverified)"), w.interrupt ? " interrupted:" : " said:"),
    h("p", { class: "text" }, text(w.content)), w.bytes && w.content !== undefined && h("p", { class: "faint" }, `Only the beginning of ${size(w.bytes)}: a planner is told all of it, and nothing keeps it.`));
}

// message leads to its call, whose result is all of it.
function message(m: Shared, x: Message) {
  return h("blockquote", { class: "message" }, h("p", { class: "by" }, h("button", { class: "link", onclick: () => m.choose(x.step) }, x.step.slice(x.step.lastIndexOf("/") + 1)),
    " told people", x.at && h("small", null, " ", moment(x.at)), x.reused && h("small", null, " (told by the run that this one tries again)"), ":"),
    h("p", { class: "text" }, x.text ?? ""), (x.bytes || !x.text) && h("p", { class: "faint" }, x.bytes ? `Only the beginning of ${size(x.bytes)}: its call has it all.` : "It is too long to be shown here: its call has it."));
}

// text is a word as it was said: a text, or its parts, of which those that are no text are shown as JSON.
function text(content: unknown): string {
  if (content === undefined) return "It is too long to be shown here.";
  if (typeof content === "string") return content;
  const part = (p: { text?: unknown } | null) => (typeof p?.text === "string" ? p.text : indent(JSON.stringify(p)));
  return Array.isArray(content) ? content.map(part).join("\n") : indent(JSON.stringify(content));
}

function refusal(x: Refused) {
  const more = x.count - x.problems.length;
  return h("div", { class: "refused" }, h("p", { class: "by" }, "The planner's answer was refused:"), x.problems.map(problem), more > 0 && h("p", { class: "faint" }, `and ${count(more, "more problem")}`));
}
