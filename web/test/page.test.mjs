// The page in a real browser: every screen in both schemes and sizes, by keyboard alone, with hostile texts, with a
// server that goes. "SCREENSHOTS=folder" writes those of the README there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { Stack, fill, hostile, large, told } from "./stack.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let stack, browser;

before(async () => {
  stack = await Stack.start();
  await fill(stack);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--enable-precise-memory-info"] });
});
after(async () => {
  await browser?.close();
  await stack?.end();
});

// open opens a page; whatever its console complains of fails the test.
async function open(t, path, { width = 1280, height = 800, scheme = "light", url = stack.url } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  t.after(() => context.close());
  const page = await context.newPage();
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push(e.message));
  page.on("console", (m) => m.type() === "error" && page.wrong.push(m.text()));
  page.on("dialog", (d) => page.wrong.push("a dialog: " + d.message()));
  await page.goto(url + path);
  return page;
}

const run = (key) => "/runs/" + key;
const screens = {
  runs: ["/", ".list tbody tr"],
  graph: [run("acme.order-1042") + "?step=charge", ".drawer .fault"],
  timeline: [run("acme.order-1042") + "?view=timeline&step=risk", ".drawer .tries"],
  steps: [run("acme.order-1042") + "?view=steps", ".rows .step"],
  agent: [run("acme.settle-311") + "?step=clerk%2F%3D0%2Fcard", ".drawer .fault"],
  words: [run("acme.settle-314") + "?view=steps&step=clerk", ".drawer .words .refused"],
  rounds: [run("acme.settle-311") + "?view=timeline", ".legend input:checked"],
  large: [run("acme.reindex-2000") + "?view=timeline", ".legend b"],
  running: [run("globex.nightly-import"), ".danger"],
  asking: [run("acme.refund-7") + "?view=steps&step=refund", ".drawer a"],
  questions: ["/questions", ".questions tbody tr"],
  approval: ["/questions/acme.refund-7?step=refund", ".answer .danger"],
  form: ["/questions/acme.refund-7?step=visit", ".answer fieldset input"],
  plan: ["/plan", ".told .fault.wrong", (page) => page.getByLabel("Plan", { exact: true }).fill(written)],
  dry: ["/plan", ".told .note", (page) => page.getByLabel("Plan", { exact: true }).fill(written.replace("carge", "fail"))],
  rejected: [run("default.typo"), ".problems .fault"],
  tools: ["/tools", ".card"],
  dead: ["/dead", ".list tbody tr"],
  workers: ["/workers", ".workers section tbody tr"],
  nowhere: ["/nowhere", ".empty a"],
  gone: [run("default.nobody"), "main h1"],
  unasked: ["/questions/acme.order-1042?step=charge", "main h1"],
  login: ["/", ".login h1", null, () => stack.guarded("let me in")],
  hovered: ["/questions/acme.refund-7?step=refund", "button.primary:hover", (page) => page.getByRole("button", { name: "Approve", exact: true }).hover()],
  refused: ["/questions/acme.refund-7?step=refund", "button.danger:hover", (page) => page.getByRole("button", { name: "Reject", exact: true }).hover()],
  filtered: ["/?status=succeeded", ".chip[aria-pressed=true]:hover", (page) => page.locator(".chip", { hasText: "succeeded" }).hover()],
  chosen: [run("acme.order-1042") + "?view=steps&step=customer", ".step[aria-selected=true] .badge"],
};
const readme = { agent: "light", plan: "light", approval: "light", runs: "light", graph: "dark", large: "light" };

// written is a plan as somebody writes it, with a tool that there isn't.
const written = `{
  "steps": [
    {"id": "customer", "tool": "echo",
     "arguments": {"id": "c-17", "name": "Ann Arbor"}},
    {"id": "orders", "tool": "echo", "arguments": {"open": [3, 5, 8]},
     "depends_on": ["customer"]},
    {"id": "notify", "tool": "echo",
     "for_each": {"in": "$ref:orders.open", "as": "item"},
     "arguments": {"order": "$ref:item", "to": "$ref:customer.name"}},
    {"id": "charge", "tool": "carge",
     "arguments": {"message": "$ref:customer.name"}, "depends_on": ["orders"]},
    {"id": "receipt", "tool": "echo", "arguments": {"of": "$ref:charge"}}
  ],
  "output_steps": ["notify", "receipt"]
}`;

for (const [name, [path, there, act, elsewhere]] of Object.entries(screens)) {
  test(`the screen ${name}`, async (t) => {
    const url = await elsewhere?.();
    for (const scheme of ["light", "dark"]) {
      for (const [width, height] of [[1280, 800], [390, 844]]) {
        const page = await open(t, path, { width, height, scheme, ...(url && { url }) });
        await act?.(page);
        await page.locator(there).first().waitFor();
        const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(across <= 0, `${name} ${width}: it is ${across} px too wide`);
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run({ rules: { "scrollable-region-focusable": { enabled: false } } }));
        assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("; ")}`), [], `${name} ${scheme} ${width}`);
        assert.deepEqual(page.wrong.filter((text) => !/status of 40[14]/.test(text)), [], `${name} ${scheme} ${width}`);
        if (process.env.SCREENSHOTS && width === 1280 && readme[name] === scheme) {
          await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
          await page.screenshot({ path: join(process.env.SCREENSHOTS, `ui-${name}.png`) });
        }
        await page.context().close();
      }
    }
  });
}

test("what needs attention comes first, filters stand in the address", async (t) => {
  const page = await open(t, "/");
  await page.locator("td.run a").first().waitFor();
  assert.match(await page.locator("tbody tr").first().getAttribute("class"), /attention/);
  await page.getByRole("button", { name: /rejected/ }).click();
  await page.locator("td.run a", { hasText: "typo" }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  assert.match(page.url(), /status=rejected/);
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length > 1);
  await page.keyboard.press("/");
  await page.keyboard.type("invoice-2205");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  assert.match(page.url(), /q=invoice-2205/);
});

test("on a narrow screen no word is cut in two, and the status of a step is there to read", async (t) => {
  const narrow = { width: 390, height: 844 };
  const page = await open(t, "/tools", narrow);
  await page.locator("summary").first().click();
  for (const cell of await page.locator("details[open] .took td").all()) assert.ok((await cell.boundingBox()).height < 40, await cell.innerText());
  await page.goto(stack.url + run("acme.settle-311") + "?view=steps");
  await page.locator(".rows .step").first().waitFor();
  const badges = page.locator(".rows .step .badge");
  assert.ok((await badges.count()) > 5);
  for (const badge of await badges.all()) {
    const box = await badge.boundingBox();
    assert.ok(box.x + box.width <= 378, await badge.innerText());
  }
  await page.locator(".counts", { hasText: "and 15 within" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("by keyboard alone", async (t) => {
  const page = await open(t, "/?q=order-1042");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 1);
  await page.locator("td.run a").focus();
  await page.keyboard.press("Enter");
  await page.locator("canvas.graph").waitFor();
  await page.locator("canvas.graph").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/step=/);
  await page.keyboard.press("Enter");
  await page.locator(".drawer h2:focus").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".drawer").waitFor({ state: "hidden" });
  await page.getByRole("tab", { name: "Graph" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".timeline .scroll").waitFor();
  await page.locator(".timeline .scroll").focus();
  await page.keyboard.press("End");
  await page.waitForURL(/step=/);
  await page.getByRole("tab", { name: "Timeline" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".virtual").focus();
  await page.keyboard.press("Home");
  await page.locator('.rows [aria-selected="true"]', { hasText: "customer" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("an agent's rounds are shown as they form", async (t) => {
  await stack.submit("settle-312", [{ id: "clerk", tool: "clerk", arguments: { hold: 3 } }], "acme");
  const page = await open(t, run("acme.settle-312") + "?view=steps");
  for (const call of ["round 0: the planner", "round 0: customer", "round 1: invoice", "round 2: the planner"]) await page.locator(".rows .step", { hasText: call }).waitFor();
  assert.equal(await page.locator(".rows .step", { hasText: "round 2: letter" }).count(), 0, "nobody knows yet what comes next");
  await page.locator(".rows .step", { hasText: "round 2: letter" }).waitFor();
  await page.locator("header.run .title", { hasText: "succeeded" }).waitFor();
  await page.locator(".rows .step", { hasText: "round 3: the planner" }).waitFor();
  assert.equal(await page.locator(".rows .step", { hasText: "round 1: r0" }).count(), 0, "what hands on what a round came to is no call");
  assert.deepEqual(page.wrong, []);
});

test("what is said to an agent is shown as it comes, round by round, with what was refused, as text", async (t) => {
  await told(stack, "settle-315");
  const page = await open(t, run("acme.settle-315") + "?view=steps&step=clerk");
  await page.locator(".drawer h2", { hasText: "clerk" }).waitFor();
  const words = page.locator(".drawer .words");
  assert.equal(await words.count(), 0);
  await stack.say("settle-315", hostile, "--by", hostile);
  await words.locator("h4", { hasText: "Not told yet: the next round will be" }).waitFor();
  await words.locator("blockquote", { hasText: `${hostile} (unverified) said:` }).waitFor();
  await stack.say("settle-315", "Hurry.", "--interrupt");
  await words.locator("h4", { hasText: /^Round 3$/ }).waitFor();
  await words.locator("blockquote", { hasText: "somebody interrupted:" }).waitFor();
  await words.locator(".refused", { hasText: "invalid_id" }).filter({ hasText: "<img src=x" }).waitFor();
  assert.equal(await words.locator("blockquote").count(), 2);
  assert.equal(await words.locator("h4", { hasText: "Not told" }).count(), 0);
  await page.locator("header.run .title", { hasText: "succeeded" }).waitFor();
  await words.getByRole("button", { name: "Round 3" }).click();
  await page.locator(".drawer dd", { hasText: "round 3: the planner" }).waitFor();
  await words.locator("h3", { hasText: "What was said to its agent · Its answer was refused" }).waitFor();
  assert.equal(await words.locator("blockquote").count(), 2);
  assert.equal(await words.locator("h4").count(), 0);
  assert.equal(await words.locator("img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong, []);
});

test("what an agent tells people is shown under its round, as text, while it goes on and after the end", async (t) => {
  await stack.submit("settle-316", [{ id: "clerk", tool: "clerk", arguments: { hold: 3, tell: hostile } }], "acme");
  const page = await open(t, run("acme.settle-316") + "?view=steps&step=clerk");
  const words = page.locator(".drawer .words"), message = words.locator("blockquote.message", { hasText: hostile });
  await words.locator("h3", { hasText: "What it told people" }).waitFor();
  await words.locator("h4", { hasText: /^Round 1$/ }).waitFor();
  await message.waitFor();
  await page.locator("header.run .title", { hasText: "running" }).waitFor();
  await page.locator("header.run .title", { hasText: "succeeded" }).waitFor();
  await page.reload();
  await message.waitFor();
  await words.getByRole("button", { name: "Round 1" }).click();
  await words.locator("h3", { hasText: "What its agent told people" }).waitFor();
  await message.getByRole("button", { name: "tell" }).click();
  await page.locator(".drawer h2", { hasText: "clerk/=1/tell" }).waitFor();
  assert.equal(await page.locator(".drawer img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong, []);
});

test("what models write is streamed, as text, bounded, and gone once it is over", async (t) => {
  await stack.submit("settle-313", [{ id: "clerk", tool: "clerk", arguments: { hold: 4 } }], "acme");
  const page = await open(t, "/nowhere");
  let id = 0;
  const frame = (kind, data) => `id: e-${++id}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`;
  const planner = "clerk/=2/=plan", part = (at, text, attempt = 1) => [{ step: planner, attempt, at, end: at + text.length, text }];
  const long = "x".repeat(20000);
  let frames = frame("reset", {}) + frame("tokens", part(0, "from before")) + frame("tokens", part(0, '{"steps": [', 2)) + frame("tokens", part(11, hostile, 2)) + frame("tokens", part(99, "after a gap", 2));
  await page.route("**/api/v1/stream?run=*", (r) => r.fulfill({ headers: { "content-type": "text/event-stream" }, body: "retry: 200\n\n" + frames })); // and again and again
  await page.goto(stack.url + run("acme.settle-313"));
  const text = page.locator(".writing pre");
  await text.waitFor();
  await page.locator(".writing h2", { hasText: "round 2: the planner writes" }).waitFor();
  const comes = (wanted) => page.waitForFunction((wanted) => document.querySelector(".writing pre")?.textContent === wanted, wanted);
  await comes(`{"steps": [${hostile} … after a gap`);
  assert.equal(await page.locator(".writing img").count(), 0);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  frames = frame("tokens", part(0, long.slice(0, 8000), 3)) + frame("tokens", part(8000, long.slice(0, 8000), 3)) + frame("tokens", part(16000, "the end" + long.slice(0, 4000), 3));
  await comes((long.slice(0, 16000) + "the end" + long.slice(0, 4000)).slice(-16384));
  frames = frame("steps", [{ step: planner, status: "succeeded" }]);
  await page.locator(".writing").waitFor({ state: "detached" });
  assert.deepEqual(page.wrong, []);
});

test("hostile names, arguments and errors are text", async (t) => {
  const page = await open(t, "/");
  await page.locator("td.run a", { hasText: "<img" }).click();
  await page.locator("h1", { hasText: hostile }).waitFor();
  for (const step of ["a", "b"]) {
    await page.goto(page.url().replace(/\?.*/, "") + "?step=" + step);
    await page.locator(".drawer dl").waitFor();
  }
  await page.locator(".drawer .fault p", { hasText: hostile }).waitFor();
  await page.goto(stack.url + "/dead");
  await page.locator("td.why", { hasText: hostile }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong, []);
});

test("500 workers, with hostile names, of two versions", async (t) => {
  const page = await open(t, "/nowhere");
  const beat = (i) => ({ worker: `${hostile} ${i}`, user: hostile, host: hostile, version: i ? "v0.3.0" : hostile, since: new Date().toISOString(), heard: new Date().toISOString(),
    busy: i, done: 9007199254740992, failed: 0, leaving: i === 1, tools: Array.from({ length: 9 }, (_, k) => ({ tool: k ? `t${k}` : `only-${i}`, slots: 8, busy: k === 8 ? 1 : 0, held: k === 7 })), more: 2744 });
  let list = Array.from({ length: 500 }, (_, i) => beat(i));
  await page.route("**/api/v1/workers", (r) => r.fulfill({ json: { workers: list, orchestrators: [{ id: hostile, version: "v0.3.0", partitions: [0, 1, 2, 7], leaving: false }], missed: true, now: new Date().toISOString() } }));
  await page.getByRole("link", { name: "Workers" }).click();
  await page.locator(".workers .note", { hasText: "2 versions" }).waitFor();
  assert.equal(await page.locator(".workers > table tbody tr").count(), 500);
  assert.equal(await page.locator("td.version .warn").count(), 1);
  await page.locator("section td", { hasText: "4 partitions: 0–2, 7" }).waitFor();
  await page.locator("td.hosts", { hasText: "and 2,747 more" }).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("only-321");
  await page.locator("p.faint", { hasText: /^1 worker,/ }).waitFor();
  assert.match(page.url(), /q=only-321/);
  list = [];
  await page.locator(".empty", { hasText: "No worker is alive" }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong, []);
});

test("a run is followed to its end, in two tabs, and cancelled", async (t) => {
  await stack.submit("followed", [{ id: "a", tool: "sleep", arguments: { ms: 400 } }, { id: "b", tool: "sleep", arguments: { ms: 3600000 }, depends_on: ["a"] }]);
  const [one, two] = [await open(t, run("default.followed") + "?view=steps"), await open(t, run("default.followed") + "?view=timeline")];
  await one.locator(".rows .step", { hasText: "succeeded" }).waitFor();
  await one.getByRole("button", { name: "Cancel" }).click();
  await one.getByRole("button", { name: "Cancel the run" }).click();
  for (const page of [one, two]) {
    await page.locator(".title .badge", { hasText: "cancelled" }).waitFor();
    assert.deepEqual(page.wrong, []);
  }
});

test("the list counts what goes on", async (t) => {
  const page = await open(t, "/?q=nightly-import");
  await page.locator('tr .bar[aria-label="3 steps: 1 succeeded"]').waitFor();
  await page.locator("td.tools", { hasText: "sleep, echo" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a run is tried again", async (t) => {
  const page = await open(t, run("acme.order-1043"));
  await page.getByRole("button", { name: "Retry …" }).click();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await page.waitForURL(/order-1043=2E2/);
  await page.locator("h1", { hasText: "order-1043.2" }).waitFor();
  await page.locator(".facts a", { hasText: "order-1043" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("an approval is edited and given, by keyboard alone", async (t) => {
  await stack.submit("pay-1", [{ id: "pay", tool: "echo", arguments: { amount: 1234567890123456789 + 0.5, to: "ann" }, approval: { ask: "Pay " + hostile + "?" } }], "default", { output_steps: ["pay"] });
  await stack.until("questions?run=default.pay-1", (q) => q.questions.length === 1);
  const page = await open(t, "/questions");
  await page.locator("td.text a", { hasText: hostile }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Edit the arguments" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("textarea.code").focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{"amount": 12345678901234567891, "to": }');
  await page.getByRole("button", { name: "Approve with these" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".answer .fault", { hasText: "this is not JSON" }).waitFor();
  await page.locator("textarea.code").focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{"amount": 12345678901234567891, "to": "bob"}');
  await page.getByLabel("Reason").focus();
  await page.keyboard.type("bob has it");
  await page.keyboard.press("Enter");
  await page.locator(".note", { hasText: "It was approved by local." }).waitFor();
  await page.getByRole("link", { name: "Follow the run" }).click();
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  const step = await stack.ask("runs/default.pay-1/steps/pay");
  assert.match(step.result.text, /12345678901234567891/);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong, []);
});

test("what a plan asks is answered by a choice and by a form", async (t) => {
  const steps = (await import("./stack.mjs")).refund.filter((s) => s.tool === "ask");
  await stack.submit("visit-1", steps, "default", { output_steps: ["day", "visit"] });
  await stack.until("questions?run=default.visit-1", (q) => q.questions.length === 2);
  const page = await open(t, run("default.visit-1"));
  await page.locator(".note a", { hasText: "On which day" }).click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".answer .fault", { hasText: "there is none yet" }).waitFor();
  await page.getByLabel("tuesday").check();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".note", { hasText: "It was answered by local." }).waitFor();
  await page.getByRole("link", { name: "Other questions" }).click();
  await page.locator("tr", { hasText: "visit-1" }).locator("td.text a").click();
  await page.getByLabel("Floor").fill("third");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".answer .fault", { hasText: "Floor: this is not a number" }).waitFor();
  await page.getByLabel("Floor").fill("3");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".answer .fault", { hasText: "street" }).waitFor(); // who asks is the judge
  await page.getByLabel("Street").fill('Main "old" St');
  await page.getByLabel("There is a lift").check();
  await page.getByLabel("Bell").selectOption("right");
  await page.getByLabel("phone").fill("1234");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".note", { hasText: "It was answered by local." }).waitFor();
  await page.getByRole("link", { name: "Follow the run" }).click();
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  assert.deepEqual(JSON.parse((await stack.ask("runs/default.visit-1/steps/visit")).result.text), { street: 'Main "old" St', floor: 3, lift: true, bell: "right", contact: { phone: "1234" } });
  assert.deepEqual(JSON.parse((await stack.ask("runs/default.visit-1/steps/day")).result.text), "tuesday");
  await page.goto(stack.url + "/questions/default.visit-1?step=day");
  await page.getByRole("heading", { name: "Nobody is asked this any more" }).waitFor();
  assert.deepEqual(page.wrong.filter((text) => !/status of 40[04]/.test(text)), []);
});

test("what a tool asks in the middle of a call is answered by a form", async (t) => {
  await stack.submit("seat-1", [{ id: "book", tool: "seats_book", arguments: { flight: "LH 400" } }], "default", { output_steps: ["book"] });
  const [asked] = (await stack.until("questions?run=default.seat-1", (q) => q.questions.length === 1)).questions;
  assert.deepEqual([asked.kind, asked.step, asked.tool, asked.attempt], ["ask", "book", "seats_book", 1]);
  const page = await open(t, "/questions");
  const row = page.locator("tr", { hasText: "seat-1" });
  await row.locator("td", { hasText: "an answer to its tool" }).waitFor();
  await row.locator("small", { hasText: "book · seats_book" }).waitFor();
  await page.goto(stack.url + run("default.seat-1") + "?step=book");
  await page.locator(".drawer dd", { hasText: "an answer to its tool" }).waitFor();
  await page.locator(".drawer a", { hasText: "Answer …" }).click();
  await page.getByRole("heading", { name: "Which seat shall it be?" }).waitFor();
  await page.locator("dd", { hasText: "the tool, in the middle of attempt 1" }).waitFor();
  await page.getByLabel("Row").fill("12");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".answer .fault", { hasText: "letter" }).waitFor(); // the tool's schema is the judge
  await page.getByLabel("Letter").selectOption("C");
  await page.getByLabel("Reason").fill("by the aisle");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".note", { hasText: "It was answered by local." }).waitFor();
  await page.getByRole("link", { name: "Follow the run" }).click();
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  await page.goto(stack.url + run("default.seat-1") + "?step=book");
  const tries = page.locator(".drawer .tries tbody tr");
  await tries.nth(1).locator("td", { hasText: "succeeded" }).waitFor();
  await tries.nth(0).locator("td", { hasText: "asked a person" }).waitFor();
  await page.locator(".drawer .answers li", { hasText: "answered by local by the aisle" }).waitFor();
  assert.deepEqual(JSON.parse((await stack.ask("runs/default.seat-1/steps/book")).result.text), { flight: "LH 400", hold: "hold 7", seat: { row: 12, letter: "C" } });
  assert.deepEqual(page.wrong.filter((text) => !/status of 400/.test(text)), []);
});

test("a plan is rejected as a whole", async (t) => {
  await stack.submit("whole-1", [{ id: "a", tool: "echo", arguments: {} }], "default", { approval: { ask: "Begin at all?" } });
  await stack.until("questions?run=default.whole-1", (q) => q.questions.length === 1);
  const page = await open(t, "/questions/default.whole-1?step=%3D");
  await page.getByLabel("Reason").fill("not today");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.locator(".note", { hasText: "It was rejected by local." }).waitFor();
  await page.getByRole("link", { name: "Follow the run" }).click();
  await page.locator(".title .badge", { hasText: "cancelled" }).waitFor();
});

test("a plan is written, mended, run and followed, by keyboard alone", async (t) => {
  const page = await open(t, "/plan");
  await page.locator(".verdict", { hasText: "It can be run: 2 calls of 1 tool, in 2 waves." }).waitFor();
  const area = page.getByLabel("Plan", { exact: true });
  await area.focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText('{"steps": [');
  await page.locator(".told .fault", { hasText: "malformed_json" }).waitFor();
  assert.equal(await area.getAttribute("aria-invalid"), "true");
  await page.keyboard.insertText('\n  {"id": "a", "tool": "echo", "arguments": {"for": "äöü😀 "}},\n  {"id": "b", "tool": "ecko", "arguments": {"it": "$ref:a"}}\n]}');
  await page.locator(".told .fault", { hasText: "unknown_tool" }).waitFor();
  assert.equal(await page.locator("mark.wrong").innerText(), '"ecko"'); // what stands before it takes several bytes
  assert.ok(await page.getByRole("button", { name: "Run", exact: true }).isDisabled());
  await page.getByRole("button", { name: "line 3" }).focus();
  await page.keyboard.press("Enter");
  assert.equal(await area.evaluate((e) => e.value.slice(e.selectionStart, e.selectionEnd)), '"ecko"');
  await page.keyboard.insertText('"echo"');
  await page.locator(".verdict", { hasText: "2 calls of 1 tool" }).waitFor();
  assert.equal(await page.locator("mark").count(), 0);
  await page.locator(".drygraph canvas").focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".told .card h2", { hasText: "a" }).waitFor();
  await page.getByLabel("Run id").focus();
  await page.keyboard.type("written-1");
  await page.reload(); // what was typed is kept
  assert.match(await area.inputValue(), /"echo"/);
  await page.getByLabel("Run id").fill("written-1");
  await area.focus();
  await page.keyboard.press("Control+Enter");
  await page.locator("h1", { hasText: "written-1" }).waitFor();
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  await page.getByRole("button", { name: "Edit its plan" }).click();
  await page.locator(".verdict", { hasText: "2 calls of 1 tool" }).waitFor();
  await page.getByLabel("Run id").fill("written-1");
  await area.fill((await area.inputValue()).replace("äöü", ""));
  await page.keyboard.press("Control+Enter");
  await page.locator(".told .fault", { hasText: "written-1" }).waitFor(); // there is another plan of that name
  assert.deepEqual(page.wrong.filter((text) => !/status of 409/.test(text)), []);
});

test("the plan of a step that failed is edited alone", async (t) => {
  const page = await open(t, run("acme.order-1042") + "?step=charge");
  await page.getByRole("button", { name: "Edit as a plan" }).click();
  await page.locator(".verdict", { hasText: "It can be run: 1 call" }).waitFor();
  assert.match(page.url(), /tenant=acme/);
  assert.match(await page.getByLabel("Plan", { exact: true }).inputValue(), /declined/);
  assert.deepEqual(page.wrong, []);
});

test("a tool tells what its calls took, and how they failed", async (t) => {
  const page = await open(t, "/tools?tenant=acme&q=fail");
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "fail", exact: true }) });
  await card.locator("summary", { hasText: /p50 .*, p99 .*\/min.*% failed/ }).waitFor();
  await card.locator("summary").click();
  await card.getByRole("link", { name: "tool_failed" }).waitFor();
  await card.getByRole("link", { name: "tool_terminal" }).click();
  await page.locator("td.why", { hasText: "declined" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("calls of tools that are not told apart are counted above those that are", async (t) => {
  const page = await open(t, "/nowhere");
  let others;
  await page.route("**/api/v1/figures?*", async (r) => {
    const answer = await r.fetch(), said = await answer.json();
    await r.fulfill({ response: answer, json: { ...said, others } });
  });
  const note = page.locator(".tools .note", { hasText: "too many tools" });
  await page.goto(stack.url + "/tools?tenant=acme");
  await page.locator(".card summary", { hasText: /p50/ }).first().waitFor();
  assert.equal(await note.count(), 0);
  others = { tool: "", calls: 12345, failed: 678, per_minute: 8.6, p50_ms: 1, p99_ms: 2, wait_p50_ms: 1, wait_p99_ms: 2 };
  await page.goto(stack.url + "/tools?tenant=acme");
  await note.waitFor();
  assert.match(await note.innerText(), /: 12,345 calls of some are counted with no tool below\./);
  assert.ok((await page.locator(".card summary", { hasText: /p50/ }).count()) > 3, "the others are told apart as before");
  others = { ...others, calls: 1 };
  await page.goto(stack.url + "/tools?tenant=acme");
  await note.filter({ hasText: ": 1 call of" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("an override is looked at, set and cleared, by keyboard alone", async (t) => {
  const page = await open(t, "/tools?q=upper");
  const card = page.locator(".card", { has: page.getByRole("heading", { name: "text_upper", exact: true }) });
  await card.locator("summary").focus();
  await page.keyboard.press("Enter");
  await card.getByRole("button", { name: "Override" }).focus();
  await page.keyboard.press("Enter");
  const area = page.getByLabel("Override", { exact: true });
  await page.getByText("The contract stays as it is.").waitFor();
  await area.fill('{"x-orchestration": {"max_concurrencies": 3}}');
  await page.locator("dialog .fault", { hasText: "no such field" }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Set it" }).isDisabled());
  await area.fill('{"x-orchestration": {"max_concurrency": 3, "retry": {"max_attempts": 7}}}');
  await page.locator("dialog tr", { hasText: "max_attempts" }).waitFor();
  assert.match(await page.locator("dialog tr", { hasText: "limit" }).innerText(), /3$/);
  await page.getByRole("button", { name: "Set it" }).focus();
  await page.keyboard.press("Enter");
  await card.locator("dd", { hasText: "an operator changed it" }).waitFor();
  assert.ok(await card.evaluate((e) => e.open)); // what was opened stays so
  await card.getByRole("button", { name: "Override" }).click();
  await page.getByRole("button", { name: "Clear it" }).click();
  await card.locator("dd", { hasText: "an operator changed it" }).waitFor({ state: "detached" });
  assert.deepEqual(page.wrong.filter((text) => !/status of 422/.test(text)), []);
});

test("the call of a dead letter is made again", async (t) => {
  const page = await open(t, "/dead");
  await page.locator("tr", { hasText: "gateway time-out" }).first().getByRole("button", { name: "Call again …" }).click();
  await page.getByRole("button", { name: "Call again", exact: true }).click();
  await page.locator("h1", { hasText: "dead/order-1043" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("the calls of all dead letters of a filter are made again, by keyboard alone", async (t) => {
  for (let i = 0; i < 3; i++) await stack.submit(`lapse-${i}`, [{ id: "a", tool: "fail", arguments: { message: "lapse", terminal: true } }], "globex");
  await stack.until("dead?tenant=globex", (d) => d.letters.filter((l) => l.run.startsWith("lapse")).length === 3);
  const before = (await stack.ask("dead")).letters.length;
  const page = await open(t, "/dead");
  await page.locator("main p.faint", { hasText: `${before} dead letters` }).waitFor();
  await page.getByRole("button", { name: /^tool_terminal/ }).focus();
  await page.keyboard.press("Enter");
  const count = await page.locator("tbody tr").count();
  await page.getByRole("button", { name: "Call these again …" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: `Make ${count} calls again?` }).waitFor();
  const requests = [];
  page.on("request", (r) => r.url().endsWith("dead/retry") && requests.push(JSON.parse(r.postData())));
  await page.getByRole("button", { name: "Call them again" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor({ state: "detached" });
  await stack.until("runs?tenant=globex&q=dead%2Flapse", (l) => l.matched === 3);
  assert.deepEqual(requests.map((r) => r.letters.length), [count], "one request");
  assert.deepEqual(page.wrong, []);
});

test("what a step was called with is copied, as JSON, as a command and as a plan", async (t) => {
  const page = await open(t, run("acme.order-1042") + "?step=charge");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const copied = async (name) => {
    const b = page.locator(".drawer").getByRole("button", { name });
    await b.click();
    await page.locator(".drawer").getByRole("button", { name: "Copied" }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    await b.waitFor(); // it has its name again
    return text;
  };
  const detail = JSON.parse(await copied("Copy as JSON"));
  assert.equal(detail.id, "charge");
  assert.match(await copied("Copy command"), /^stepjet get order-1042 --tenant acme --step charge$/);
  const plan = JSON.parse(await copied("Copy as one-step plan"));
  assert.equal(plan.steps.length, 1);
  assert.equal(plan.steps[0].tool, detail.tool);
  await page.context().clearPermissions();
  assert.deepEqual(page.wrong, []);
});

test("the doctor is asked on the page, by keyboard alone", async (t) => {
  const page = await open(t, "/workers", { width: 390, height: 844 });
  await page.getByRole("button", { name: "Look for problems" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".doctor .faint", { hasText: /\d+ checks found nothing/ }).waitFor();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  assert.deepEqual(found.violations.map((v) => v.id), []);
  assert.deepEqual(page.wrong, []);
});

test("10,000 steps with 3,000 failures", async (t) => {
  await stack.submit("huge", large(10000, 0).map((s, i) => (i % 10 < 3 ? { id: s.id, tool: "fail", arguments: { message: "bad", terminal: true } } : { id: s.id, tool: "echo", arguments: { i } })));
  await stack.until("runs?q=huge", (l) => l.matched === 1 && !l.counts.running);
  for (const view of ["", "timeline", "steps"]) {
    // The budget is of a machine that does nothing else, and others work on this one: so what is held against it is the
    // processor time of the page's main thread and of the server, one after the other as they need each other. The least of
    // three counts: the first also makes what the next ones find.
    let least = Infinity;
    for (let k = 0; k < 3; k++) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
      const page = await context.newPage();
      page.wrong = [];
      page.on("pageerror", (e) => page.wrong.push(e.message));
      const watched = await context.newCDPSession(page);
      await watched.send("Performance.enable", { timeDomain: "threadTicks" });
      const served = stack.computed();
      await page.goto(stack.url + run("default.huge") + "?view=" + view);
      await page.locator(".tabs").waitFor();
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const { metrics } = await watched.send("Performance.getMetrics");
      const drawn = 1000 * metrics.find((m) => m.name === "TaskDuration").value;
      least = Math.min(least, Math.round(drawn + stack.computed() - served));
      const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
      assert.ok(heap < 100e6, `${view}: ${heap} bytes`);
      assert.deepEqual(page.wrong, []);
      await page.context().close();
    }
    t.diagnostic(`${view || "graph"}: ${least} ms of processor time until it can be used`);
    assert.ok(least < 1000, `${view || "graph"} took ${least} ms`);
  }
});

test("a viewer logs in, sees its own tenant, and changes nothing", async (t) => {
  const page = await open(t, run("acme.order-1042"), { url: await stack.guarded("let me in") });
  await page.getByLabel("Token").fill("nonsense");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".login .fault").waitFor();
  await page.getByLabel("Token").fill("let me in");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator(".title .badge", { hasText: "partial" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Retry|Cancel/ }).count(), 0);
  await page.getByRole("link", { name: "Runs", exact: true }).first().click();
  await page.locator("td.run a", { hasText: "order-1042" }).first().waitFor();
  assert.equal(await page.locator("td.run small", { hasText: "globex" }).count(), 0);
  await page.getByRole("button", { name: /Log out/ }).click();
  await page.getByLabel("Token").waitFor();
});

test("an approver approves and does nothing else, an operator the other way round", async (t) => {
  for (const [role, sees] of [["approver", 1], ["operator", 0]]) {
    const page = await open(t, "/questions/acme.refund-7?step=refund", { url: await stack.guarded("let me in", role) });
    await page.getByLabel("Token").fill("let me in");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.locator("dl", { hasText: "refund-7" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve", exact: true }).count(), sees, role);
    await page.getByRole("link", { name: "refund-7" }).click();
    await page.locator(".title .badge").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /Cancel/ }).count(), 1 - sees, role);
  }
});

test("a run that is not there is told", async (t) => {
  const page = await open(t, run("default.nobody"));
  await page.locator(".trouble", { hasText: "nobody" }).waitFor();
  assert.equal(await page.getByText("Reading …").count(), 0);
});

test("a server that is gone is told", async (t) => {
  const gone = await Stack.start();
  t.after(() => gone.end());
  const page = await open(t, "/", { url: gone.url });
  await page.locator(".state", { hasText: "live" }).waitFor();
  await gone.kill();
  await page.locator(".state", { hasText: "connecting" }).waitFor();
  await page.getByRole("link", { name: "Tools" }).click();
  await page.locator(".trouble", { hasText: "does not answer" }).waitFor();
});
