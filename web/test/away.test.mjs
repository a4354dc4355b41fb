// The page while what it rests on is away: its server's NATS, a run that somebody removes, a clock that is wrong.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";
import { Stack } from "./stack.mjs";

let stack;
before(async () => {
  stack = await Stack.start();
});
after(() => stack?.end());

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const long = [{ id: "a", tool: "sleep", arguments: { ms: 50 } }, { id: "b", tool: "sleep", arguments: { ms: 3600000 }, depends_on: ["a"] }];

test("a clock that is wrong changes no times, and those that go on agree", async (t) => {
  await stack.submit("clocked", long);
  const submitted = Date.parse((await stack.ask("runs/default.clocked")).submitted);
  for (const year of ["2031", "2019"]) {
    const page = await open(t, stack.url + "/nowhere");
    await page.locator(".empty").waitFor();
    await page.clock.install({ time: new Date(year + "-01-01") });
    await page.goto(stack.url + "/runs/default.clocked");
    await page.locator(".facts").waitFor();
    await page.locator(".facts", { hasText: /for [\d.]+ s/ }).waitFor(); // what has run for less than a second says so in milliseconds
    const told = async () => /submitted (now|(\d+) s ago|1 min ago).*for ([\d.]+) s/s.exec(await page.locator(".facts").innerText());
    const first = await told();
    await pause(3000); // the clock goes on from there
    const later = await told(), really = (Date.now() - submitted) / 1000;
    assert.ok(first && later, `${year}: ${await page.locator(".facts").innerText()}`);
    assert.ok(Number(later[3]) - Number(first[3]) > 2, `${year}: it stands at ${later[3]}`);
    assert.ok(Math.abs(Number(later[2] ?? 0) - Math.floor(Number(later[3]))) <= (later[2] ? 1 : 5), `${year}: ${later[0]}`);
    assert.ok(Math.abs(Number(later[3]) - really) < 40, `${year}: ${later[3]} s, and it is ${really}`);
    await page.goto(stack.url + "/?q=clocked");
    const row = page.locator("tbody tr", { hasText: "clocked" });
    await row.waitFor();
    const took = async () => Number(/^([\d.]+) s$/.exec(await row.locator(".took").innerText())?.[1]);
    const before = await took();
    assert.match(await row.locator(".when").innerText(), /^(now|\d+ s ago|1 min ago)$/);
    await pause(3000);
    assert.ok((await took()) - before > 2, `${year}: the list stands at ${before}`);
    await page.evaluate(() => {
      globalThis.drawn = [];
      const draw = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        globalThis.drawn.push(text);
        return draw.call(this, text, ...at);
      };
    });
    await row.locator("td.run a").click();
    await page.getByRole("tab", { name: "Timeline" }).click();
    await page.waitForFunction(() => globalThis.drawn.some((text) => /^[\d.]+ (ms|s|min|h|d)\b/.test(text)));
    const axis = (await page.evaluate(() => globalThis.drawn)).filter((text) => /^[\d.]+ (ms|s|min|h|d)\b/.test(text));
    assert.ok(axis.length > 0, `${year}: no axis`);
    assert.deepEqual(axis.filter((text) => / (h|d)\b/.test(text)), [], year);
    assert.deepEqual(page.wrong, []);
  }
});

test("a run that is removed while it is looked at", async (t) => {
  await stack.submit("removed", [{ id: "a", tool: "echo", arguments: { x: 1 } }]);
  await stack.until("runs?q=removed", (l) => l.counts.succeeded === 1);
  const page = await open(t, stack.url + "/runs/default.removed?view=steps");
  await page.locator(".rows .step", { hasText: "succeeded" }).waitFor();
  await stack.remove("default.removed");
  await page.locator(".rows .step").first().click(); // what it showed stays, and the rest is told or found
  await page.locator(".drawer .badge, .drawer .fault").first().waitFor();
  const other = await open(t, (await stack.page()) + "/runs/default.removed");
  await other.getByRole("heading", { name: "This run is not there" }).waitFor();
  await other.getByRole("link", { name: "All runs" }).click();
  await other.locator("main.runs").waitFor();
});

test("NATS is gone while the page's server lives, and comes back", async (t) => {
  await stack.submit("held", long);
  const url = await stack.page();
  const [list, run, before] = await Promise.all([open(t, url + "/?q=held"), open(t, url + "/runs/default.held"), open(t, url + "/tools")]);
  for (const page of [list, run]) await page.locator(".state", { hasText: "live" }).waitFor();
  await list.locator("tbody tr").waitFor();
  await run.locator(".facts").waitFor();
  const listen = stack.server.replace("nats://", "");
  await stack.kill();
  const gone = Date.now();
  for (const page of [list, run]) {
    await page.locator(".away", { hasText: /no connection to NATS since .* What is shown is of then\..*tries again/s }).waitFor();
    await page.locator(".state", { hasText: "no connection" }).waitFor();
  }
  t.diagnostic(`both pages say it ${Date.now() - gone} ms after`);
  const standing = async (at) => {
    const first = await at.innerText();
    await pause(2500);
    assert.equal(await at.innerText(), first, "what was at work counts no further");
  };
  await Promise.all([standing(run.locator(".facts span", { hasText: /^for .* as of / })), standing(list.locator("tbody td.took"))]);

  const validate = (path, body) => ["POST", path, body];
  for (const [method, path, body] of [["GET", "runs/default.held"], ["GET", "runs/default.held/plan"], ["GET", "runs/default.held/steps/a"], ["GET", "questions"], ["GET", "tools"], ["GET", "dead"],
    ["GET", "workers"], ["GET", "doctor"], validate("validate", '{"steps":[]}'), validate("heads", '{"keys":[]}'), validate("runs?run=x", '{"steps":[]}'), validate("runs/default.held/cancel", "{}"), validate("runs/default.held/retry", "{}")]) {
    const asked = Date.now(), answer = await fetch(`${url}/api/v1/${path}`, { method, body }), said = await answer.json();
    assert.equal(answer.status, 503, path);
    assert.equal(said.code, "no_connection", path);
    assert.match(said.hint, /by itself/, path);
    assert.ok(Date.now() - asked < 2000, `${path} took ${Date.now() - asked} ms`);
  }
  const anew = await open(t, url + "/runs/default.held");
  await anew.locator(".trouble", { hasText: "no connection to NATS" }).waitFor();
  await anew.getByText("The page tries again").first().waitFor();
  await before.locator(".trouble .hint", { hasText: "by itself" }).waitFor(); // without a stream: told by what it asks for

  await stack.up(listen);
  for (const page of [list, run, anew, before]) await page.locator(".trouble").waitFor({ state: "detached" });
  for (const page of [list, run, anew]) await page.locator(".state", { hasText: "live" }).waitFor();
  await anew.getByRole("heading", { name: "held" }).waitFor();
  const stood = await run.locator(".facts span", { hasText: /^for / }).innerText();
  await run.waitForFunction((stood) => ![...document.querySelectorAll(".facts span")].some((e) => e.textContent === stood), stood);
  assert.deepEqual([list, run, anew, before].flatMap((p) => p.wrong).filter((text) => !/status of 503/.test(text)), []);
});
