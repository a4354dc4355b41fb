// The page: its frame, and which screen is shown.
import { ask, away, line, me, now, tick, trouble, type Away, type Fault, type Me } from "./api";
import { append, effect, h, quietly, signal, type Child } from "./dom";
import { dead } from "./dead";
import { fault } from "./drawer";
import { span } from "./format";
import { runs } from "./list";
import { question, questions } from "./questions";
import { run } from "./run";
import { planEditor } from "./plan";
import { place } from "./state";
import { tools } from "./tools";
import { workers } from "./workers";

const screens: [string, string][] = [["", "Runs"], ["questions", "Questions"], ["tools", "Tools"], ["dead", "Dead letters"], ["workers", "Workers"], ["plan", "Plan"]];

// Which screen it is, apart from its parameters: these are the screen's own matter.
const screen = signal("");
effect(() => screen.set(place().path.slice(0, 2).join("/")));

function content(): Child {
  const who = me(), [first, second] = screen().split(/\/(.*)/s);
  return quietly(() => (who === null ? null : who === "stranger" ? login() : shown(first, second)));
}

function shown(first: string, second: string): Child {
  if (!first) return runs();
  if (first === "runs") return second ? run(second) : runs();
  if (first === "questions") return second ? question(second) : questions();
  if (first === "plan") return planEditor();
  if (first === "tools") return tools();
  if (first === "dead") return dead();
  if (first === "workers") return workers();
  return h("main", { id: "main", tabindex: -1 }, h("div", { class: "empty" }, h("h1", null, "There is no such page"), h("p", null, h("a", { href: "/" }, "All runs"))));
}

function frame(): Child[] {
  const links = screens.map(([name, text]) =>
    h("a", { href: "/" + name, "aria-current": () => ((screen().split("/")[0] || "runs") === (name || "runs") ? "page" : null) }, text));
  return [
    h("a", { class: "skip", href: "#main", onclick: ((e: Event) => (e.preventDefault(), document.getElementById("main")?.focus())) as never }, "To the content"),
    h("header", { class: "top" }, h("a", { class: "brand", href: "/" }, h("img", { src: "/icon.svg", alt: "" }), "Stepjet"), h("nav", { "aria-label": "Screens" }, links),
      h("span", { class: "state", role: "status", "data-state": () => (away()?.by === "nats" || trouble() ? "trouble" : line()) }, () => (away()?.by === "nats" ? "no connection" : trouble() ? "no answer" : { live: "live", waiting: "connecting", off: "" }[line()])),
      () => {
        const who = me();
        return who && who !== "stranger" && who.login && h("button", { onclick: () => void ask("logout", {}).then(start) }, "Log out ", who.name);
      }),
    () => {
      const e = trouble(), a = away();
      if (a && (!e || e.code === "no_connection")) return gone(a);
      return e && me() !== "stranger" && h("div", { class: "trouble" }, fault(e));
    },
    content,
  ];
}

// gone says that what is shown is of before, and that nobody has to do anything for it to go on.
function gone(a: Away) {
  const since = h("time", { datetime: new Date(a.since).toISOString() }, new Date(a.since).toLocaleTimeString());
  return h("div", { class: "trouble" }, h("div", { class: "fault away", role: "alert" },
    h("p", null, a.by === "nats" ? "The page's server has had no connection to NATS since " : "The page's server has not answered since ", since,
      h("span", { "aria-live": "off" }, () => (tick(), ` (${span(now() - a.since)})`)), ". What is shown is of then."),
    h("p", { class: "hint" }, "→ ", a.by === "nats" ? "It tries again all the time, and goes on by itself. Is a NATS server running where it was told to connect to?" : "The page tries again, and goes on by itself. Is stepjet still running there?")));
}

function login() {
  const wrong = signal<Fault | null>(null);
  const token = h("input", { type: "password", autocomplete: "current-password", "aria-label": "Token", placeholder: "Token" });
  return h("main", { id: "main", tabindex: -1, class: "login" }, h("h1", null, "Log in"),
    h("form", { onsubmit: ((e: Event) => {
      e.preventDefault();
      ask("login", { token: token.value }).then(start, (f: Fault) => wrong.set(f));
    }) as never }, token, h("button", { class: "primary" }, "Log in")),
    () => wrong() && fault(wrong()!));
}

async function start() {
  try {
    me.set(await ask<Me>("me"));
    trouble.set(null);
  } catch (e) {
    if ((e as Fault).code !== "permission") {
      trouble.set(e as Fault);
      setTimeout(() => void start(), 3000);
    }
  }
}

append(document.body, frame());
setInterval(() => document.hidden || tick.set(tick.peek() + 1), 500);
void start();
