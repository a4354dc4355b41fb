// The page by keyboard alone, as it is used by who has nothing else: no click, no script that moves the focus. And what a
// tab does that nobody sees, and with what is too large for a page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFile } from "node:fs/promises";
import { open } from "./browser.mjs";
import { Stack, refund } from "./stack.mjs";

let stack;
before(async () => {
  stack = await Stack.start();
});
after(() => stack?.end());

// tabTo presses Tab until what has the focus is named so, as a screen reader names it.
async function tabTo(page, name) {
  const seen = [];
  for (let k = 0; k < 80; k++) {
    await page.keyboard.press("Tab");
    const here = await page.evaluate(() => {
      const e = document.activeElement;
      return e.getAttribute("aria-label") ?? (e.labels?.[0]?.textContent || e.textContent || "");
    });
    seen.push(here.slice(0, 40));
    if (typeof name === "string" ? here.trim() === name : name.test(here)) return;
  }
  assert.fail(`nothing named ${name}: ${seen.join(" | ")}`);
}

test("one logs in, filters the list and goes through it by keyboard alone", async (t) => {
  for (let i = 0; i < 4; i++) await stack.submit(`order-${i}`, [{ id: "a", tool: i === 3 ? "fail" : "echo", arguments: i === 3 ? { message: "no", terminal: true } : {} }], "acme");
  await stack.until("runs?tenant=acme", (l) => l.matched === 4 && !l.counts.running);
  const page = await open(t, (await stack.guarded("let me in", "operator,viewer")) + "/");
  await page.getByLabel("Token").waitFor();
  await tabTo(page, "Token");
  await page.keyboard.type("let me in");
  await page.keyboard.press("Enter");
  await page.locator("td.run a").nth(3).waitFor();
  await tabTo(page, "Order");
  await page.keyboard.press("ArrowDown");
  await page.waitForURL(/order=newest/);
  await tabTo(page, /^✓succeeded/);
  await page.keyboard.press("Space");
  await page.waitForURL(/status=succeeded/);
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 3);
  await tabTo(page, /^order-/);
  const at = () => page.evaluate(() => [...document.querySelectorAll("td.run a")].indexOf(document.activeElement));
  assert.equal(await at(), 0);
  for (const [key, place] of [["j", 1], ["j", 2], ["j", 2], ["k", 1], ["ArrowUp", 0], ["ArrowDown", 1]]) {
    await page.keyboard.press(key);
    assert.equal(await at(), place, key);
  }
  const chosen = await page.evaluate(() => document.activeElement.textContent);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: chosen }).waitFor();
  assert.deepEqual(page.wrong.filter((text) => !/status of 401/.test(text)), []);
});

test("a run is cancelled and tried again by keyboard alone", async (t) => {
  await stack.submit("long", [{ id: "a", tool: "sleep", arguments: { ms: 3600000 } }]);
  const page = await open(t, stack.url + "/runs/default.long");
  await page.locator(".title .danger").waitFor();
  await tabTo(page, "Cancel …");
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.locator(".title .badge", { hasText: "running" }).waitFor();
  await tabTo(page, "Cancel …");
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  await tabTo(page, "Cancel the run");
  await page.keyboard.press("Enter");
  await page.locator(".title .badge", { hasText: "cancelled" }).waitFor();
  await tabTo(page, "Retry …");
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor();
  await tabTo(page, "Retry");
  await page.keyboard.press("Enter");
  await page.locator("h1", { hasText: "long.2" }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a form is filled in and an approval refused by keyboard alone", async (t) => {
  await stack.submit("refund-8", refund, "default", { output_steps: ["refund", "visit"] });
  await stack.until("questions?run=default.refund-8", (q) => q.questions.length === 3);
  const page = await open(t, stack.url + "/questions/default.refund-8?step=visit");
  await page.getByLabel("Street").waitFor();
  await tabTo(page, /^Street/);
  await page.keyboard.type("Main St");
  await tabTo(page, /^Floor/);
  await page.keyboard.type("3");
  await tabTo(page, /There is a lift/);
  await page.keyboard.press("Space");
  await tabTo(page, /^Bell/);
  await page.keyboard.press("ArrowDown");
  await tabTo(page, "Answer");
  await page.keyboard.press("Enter");
  await page.locator(".note", { hasText: "It was answered by local." }).waitFor();
  await page.goto(stack.url + "/questions/default.refund-8?step=day");
  await page.locator(".answer input[type=radio]").first().waitFor();
  await tabTo(page, /monday/);
  await page.keyboard.press("ArrowDown"); // the next of them
  await tabTo(page, "Answer");
  await page.keyboard.press("Enter");
  await page.locator(".note", { hasText: "It was answered by local." }).waitFor();
  await page.goto(stack.url + "/questions/default.refund-8?step=refund");
  await page.locator(".answer .danger").waitFor();
  await tabTo(page, /^Reason/);
  await page.keyboard.type("too much");
  await tabTo(page, "Reject");
  await page.keyboard.press("Enter");
  await page.locator(".note", { hasText: "It was rejected by local." }).waitFor();
  const answers = await Promise.all(["visit", "day"].map((s) => stack.ask("runs/default.refund-8/steps/" + s)));
  assert.deepEqual(answers.map((a) => JSON.parse(a.result.text)), [{ street: "Main St", floor: 3, lift: true, bell: "left" }, "tuesday"]);
  assert.deepEqual(page.wrong, []);
});

test("what is at work, and who serves it", async (t) => {
  await stack.submit("at-work", [{ id: "a", tool: "echo", arguments: {} }, { id: "b", tool: "sleep", arguments: { ms: 3600000 }, depends_on: ["a"] }]);
  const page = await open(t, stack.url + "/?q=at-work");
  await page.locator("td.at small", { hasText: /^b for \d+ s$/ }).waitFor();
  await page.locator("td.at small a").click();
  await page.locator(".drawer h2", { hasText: "b" }).waitFor();
  await page.goto(stack.url + "/tools?q=sleep");
  await page.locator(".card", { has: page.getByRole("heading", { name: "sleep", exact: true }) }).locator(".workers", { hasText: /^1 worker, \d+ slots?$/ }).waitFor();
  assert.deepEqual(page.wrong, []);
});

test("a tab that nobody sees follows nothing", async (t) => {
  const streams = [];
  const page = await open(t, stack.url + "/", { prepare: (p) => {
    p.on("request", (r) => r.url().includes("/api/v1/stream") && streams.push(r));
    p.on("requestfailed", (r) => streams.includes(r) && (r.ended = true)); // as the page's own ending is told
  } });
  await page.locator(".state", { hasText: "live" }).waitFor();
  assert.equal(streams.length, 1);
  const see = (hidden) => page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  await see(true);
  for (let k = 0; k < 100 && !streams[0].ended; k++) await new Promise((done) => setTimeout(done, 100));
  assert.ok(streams[0].ended, "it goes on");
  await stack.submit("unseen", [{ id: "a", tool: "echo", arguments: {} }]);
  await stack.until("runs?q=unseen", (l) => l.counts.succeeded === 1);
  assert.equal(streams.length, 1);
  assert.equal(await page.locator("td.run a", { hasText: "unseen" }).count(), 0);
  await see(false);
  await page.locator("td.run a", { hasText: "unseen" }).waitFor(); // who comes back is told to read anew
  assert.equal(streams.length, 2);
  assert.deepEqual(page.wrong, []);
});

test("what is too large to be shown is saved whole", async (t) => {
  const text = "x".repeat(300 << 10);
  await stack.submit("large", [{ id: "a", tool: "echo", arguments: { text } }, { id: "b", tool: "echo", arguments: { all: Array(16).fill("$ref:a.text") } }], "default", { output_steps: ["a"] });
  await stack.until("runs?q=large", (l) => l.counts.succeeded === 1);
  const page = await open(t, stack.url + "/runs/default.large?view=steps&step=a");
  const save = async (part) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".drawer section", { hasText: part }).getByRole("link", { name: "Save the whole" }).click()]);
    return [download.suggestedFilename(), JSON.parse(await readFile(await download.path(), "utf8"))];
  };
  await page.locator(".drawer", { hasText: "Only its beginning is shown." }).waitFor();
  assert.deepEqual(await save("Result"), ["large-a.json", { text }]);
  assert.deepEqual(await save("Arguments"), ["large-a-arguments.json", { text }]);
  await page.goto(stack.url + "/runs/default.large?view=steps&step=b");
  await page.locator(".drawer", { hasText: "Too large to be shown here." }).waitFor();
  const [name, { all }] = await save("Result");
  assert.deepEqual([name, all.length, all[15] === text], ["large-b.json", 16, true]);
  assert.deepEqual(page.wrong, []);
});
