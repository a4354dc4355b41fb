// Agents and runs that wait, as somebody uses the page for them: by what can be seen and pressed there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { open } from "./browser.mjs";
import { Stack, hostile } from "./stack.mjs";

let stack;
const step = (id, tool, args = {}) => ({ id, tool, arguments: args });
const agent = (name, tools, more = {}) => ({
  name, description: "Plays the script of its input.", inputSchema: { type: "object" }, agent: { planner: { tool: "planner", mode: "plan" }, tools, ...more },
});
const play = (run, tool, rounds) => stack.submit(run, [step("agent", tool, { script: JSON.stringify(rounds) })]);
const at = (key, more = "") => `${stack.url}/runs/default.${key}?view=steps&step=agent${more}`;

before(async () => {
  stack = await Stack.start();
  const gone = join(stack.data, "gone.json");
  await writeFile(gone, JSON.stringify({ tools: [{ name: "gone", description: "Nobody hosts it.", inputSchema: { type: "object" } }] }));
  await Promise.all([
    stack.command("tools", "apply", gone).then(() => stack.apply(agent("left", [], { planner: { tool: "gone" } }))),
    stack.apply(agent("payer", ["echo"], { approval: { ask: "May it pay?", timeout: "24h" } })),
    stack.apply(agent("scout", ["echo", "fail"])).then(() => stack.apply(agent("boss", ["scout", "ask"]))),
    stack.apply(agent("waiter", ["ask", "echo"])),
  ]);
});
after(() => stack?.end());

test("a round is looked at and rejected, the planner is told why, and the next one is approved of", async (t) => {
  await play("pay", "payer", [{ steps: [step("all", "echo", { amount: 250 })] }, { steps: [step("some", "echo", { amount: 100 })], output: "paid" }]);
  const page = await open(t, at("pay"));
  const answer = page.locator(".drawer").getByRole("link", { name: "Answer …" });
  const looked = async (round, amount) => {
    await answer.click();
    await page.locator("dd", { hasText: `round ${round} of agent` }).waitFor();
    assert.match(await page.locator(".question pre").innerText(), amount);
    const { questions } = await stack.ask("questions?run=default.pay");
    const digest = await page.locator("dd code").innerText();
    assert.match(digest, /^[0-9a-f]{64}$/);
    assert.deepEqual(questions.map((q) => q.digest), [digest], "what is shown is what the answer counts for");
    return digest;
  };
  const first = await looked(0, /250/);
  await page.getByLabel("Reason").fill("no more than 100");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.locator(".note", { hasText: "It was rejected by local." }).getByRole("link", { name: "Follow the run" }).click();
  await stack.until("questions?run=default.pay", (q) => q.questions[0]?.round === 1);
  await page.locator(".words .refused", { hasText: "no more than 100" }).waitFor();
  await page.locator(".rounds tr", { hasText: "none: rejected" }).waitFor();
  assert.notEqual(await looked(1, /100/), first);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator(".note", { hasText: "It was approved by local." }).getByRole("link", { name: "Follow the run" }).click();
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  await page.getByRole("tab", { name: "Steps" }).click();
  await page.locator(".rows .step", { hasText: "round 1: some" }).waitFor();
  assert.equal(await page.locator(".rows .step", { hasText: "round 0: all" }).count(), 0, "nothing of a rejected round ran");
  assert.deepEqual(page.wrong, []);
});

test("something is said to an agent, and its round interrupted, by keyboard alone", async (t) => {
  await play("talk", "waiter", [{ steps: [step("when", "ask", { question: "When?" })] }, { steps: [step("again", "ask", { question: "And where?" })] }, { output: "told" }]);
  await stack.until("questions?run=default.talk", (q) => q.questions.length === 1);
  const page = await open(t, at("talk"));
  const area = page.getByLabel("Say something to this agent"), words = page.locator(".drawer .words");
  await area.waitFor();
  assert.ok(await page.getByRole("button", { name: "Say it", exact: true }).isDisabled(), "there is nothing to say yet");
  await area.focus();
  await page.keyboard.insertText(hostile);
  const requests = [];
  page.on("request", (r) => r.url().endsWith("/say") && requests.push(JSON.parse(r.postData())));
  await page.route("**/say", (r) => r.abort()); // it is lost on its way
  await page.keyboard.press("Control+Enter");
  await page.locator(".speak .fault", { hasText: "no_connection" }).waitFor();
  await page.unroute("**/say");
  await page.keyboard.press("Control+Enter"); // and said again, as the same word
  await page.locator(".speak [role=status]", { hasText: "It was said." }).waitFor();
  assert.equal(requests[0].id, requests[1].id);
  assert.equal(await area.inputValue(), "");
  await words.locator("h4", { hasText: "Not told yet" }).waitFor();
  await words.locator("blockquote", { hasText: hostile }).waitFor();
  await page.keyboard.insertText("Ask where.");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await words.locator("blockquote", { hasText: "interrupted:" }).filter({ hasText: "Ask where." }).waitFor();
  await page.locator(".note", { hasText: "And where?" }).waitFor();
  await page.locator(".rows .step", { hasText: "round 0: when" }).filter({ hasText: "cancelled" }).waitFor();
  await page.reload();
  await words.locator("h4", { hasText: /^Round 1$/ }).waitFor();
  await page.goto(stack.url + "/?q=talk");
  await page.locator("tbody tr small", { hasText: "asks a person: And where?" }).getByRole("link").click();
  await page.getByLabel("Answer, as JSON").fill('"here"');
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.locator(".note", { hasText: "It was" }).waitFor();
  await page.goto(at("talk"));
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  assert.equal(await area.count(), 0, "nothing can be said to it any more");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(page.wrong.filter((text) => !/ERR_FAILED/.test(text)), []);
});

test("agents below an agent are followed, row by row, as they grow", async (t) => {
  const scout = JSON.stringify([{ steps: [step("look", "echo", {}), step("bad", "fail", { message: "fog", terminal: true })], usage: { input_tokens: 1200, output_tokens: 34, cost_usd: 0.02 } }, { output: "fog" }]);
  await play("team", "boss", [{ steps: [step("which", "ask", { question: "Which way?" }), step("north", "scout", { script: scout })] }, { output: "all" }]);
  await stack.until("questions?run=default.team", (q) => q.questions.length === 1);
  const page = await open(t, at("team"));
  await page.locator(".rows .step", { hasText: "round 0: bad" }).waitFor();
  await page.locator(".note a", { hasText: "Which way?" }).waitFor();
  const [q] = (await stack.ask("questions?run=default.team")).questions;
  await stack.ask("runs/default.team/answer", { step: q.step, digest: q.digest, generation: q.generation, revision: 0, value: '"north"' });
  await page.locator(".title .badge", { hasText: "succeeded" }).waitFor();
  const second = page.locator(".rows .step", { hasText: "round 1: the planner" }).nth(1); // its place in the run is before all below north
  await second.waitFor();
  const rows = () => page.locator(".rows .step").evaluateAll((all) => all.map((e) => [Number(e.getAttribute("aria-rowindex")), ...[...e.querySelectorAll("[role=cell]")].slice(0, 3).map((c) => c.textContent)]).sort((a, b) => a[0] - b[0]));
  const grown = await rows();
  await page.reload();
  await second.waitFor();
  assert.deepEqual(grown, await rows(), "a row that was there before is what it is after");
  await page.locator(".drawer .faint", { hasText: "agents below: 2 calls of planners, 1200 tokens in, 34 out, $0.02" }).waitFor();
  await page.locator(".rows .step", { hasText: "round 0: north" }).click();
  await page.locator(".rounds tbody tr", { hasText: "1,200" }).filter({ hasText: "2, 1 did not succeed" }).waitFor();
  await page.locator(".rounds").getByRole("button", { name: "Round 0" }).click();
  await page.locator(".drawer h2", { hasText: "agent/=0/north/=0/=plan" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a run whose planner nobody hosts says so, and comes first in the list once it has waited for long", async (t) => {
  await stack.submit("alone", [step("agent", "left")]);
  await stack.submit("done", [step("a", "echo")]);
  await stack.until("runs/default.alone", (r) => Object.values(r.steps.waiting ?? {}).some((why) => why.startsWith("no worker of gone")));
  const page = await open(t, at("alone"), { width: 400, height: 850 });
  const note = page.locator(".note", { hasText: "Waits for a worker: round 0: the planner (no worker of gone" });
  await note.waitFor();
  await note.getByRole("button", { name: "round 0: the planner" }).click();
  await page.locator(".drawer .badge", { hasText: "waits for a worker" }).waitFor();
  await page.locator(".drawer dd", { hasText: "no worker of gone" }).waitFor();
  const badge = await page.locator(".rows .badge", { hasText: "waits for a worker" }).boundingBox();
  assert.ok(badge.x + badge.width <= 388, "the status is there to read");
  // Five minutes are what makes it one that needs attention: the page is told so here, as a test of the server's sees it told.
  const since = new Date(Date.now() - 7 * 60000).toISOString();
  await page.route("**/api/v1/runs?*", async (r) => {
    const answer = await r.fetch(), list = await answer.json();
    const runs = list.runs.map((x) => (x.run === "alone" ? { ...x, attention: true, waits: { step: "agent/=0/=plan", tool: "gone", since } } : x));
    await r.fulfill({ response: answer, json: { ...list, runs: runs.sort((a, b) => !!b.attention - !!a.attention), attention: 1 } });
  });
  await page.goto(stack.url + "/");
  const row = page.locator("tbody tr").first();
  await row.locator("small", { hasText: /waits for a worker of gone for 7 min/ }).waitFor();
  assert.match(await row.getAttribute("class"), /attention/);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await row.locator("small a").click();
  await note.waitFor();
  await page.getByRole("button", { name: "Cancel …" }).click();
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.locator(".title .badge", { hasText: "cancelled" }).waitFor();
  await note.waitFor({ state: "detached" });
  assert.deepEqual(page.wrong, []);
});
