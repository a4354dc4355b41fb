// A planner without a model: what it answers in each round is written down, and in the last but one it waits for "hold" seconds. What it is
// to be refused, "odd", comes once before the end. Where the input has a script, JSON as text, it plays that instead.
import { readFileSync } from "node:fs";

const { round, input } = JSON.parse(readFileSync(0, "utf8"));
const step = (id, tool, args) => ({ id, tool, arguments: args });
const answers = [
  { steps: [step("orders", "sleep", { ms: 90 }), step("customer", "echo", { id: "c-17", name: "Ann Arbor" }), step("card", "fail", { message: "the card has expired", terminal: true })] },
  { steps: [step("invoice", "echo", { to: "$ref:r0.customer.name" }), step("stock", "sleep", { ms: 60 }), ...(input.tell ? [step("tell", "communicate", { message: input.tell })] : [])] },
  { steps: [step("letter", "echo", { to: "$ref:r0.customer.name", about: "$ref:r1.invoice" })] },
  { output: { written_to: "$ref:r0.customer.name" } },
];
if (round === 2 && input.hold) await new Promise((done) => setTimeout(done, 1000 * input.hold));
if (input.script) console.log(JSON.stringify(JSON.parse(input.script)[round]));
else console.log(JSON.stringify(input.odd && round === 3 ? { steps: [step("odd", input.odd, {})] } : answers[Math.min(round, 3)]));
