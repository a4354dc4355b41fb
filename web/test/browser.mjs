// The browser of the tests: pages whose console complains of nothing.
import { after, before } from "node:test";
import { chromium } from "playwright-core";

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--enable-precise-memory-info"] });
});
after(() => browser?.close());

// open opens a page; what its console complains of stands in page.wrong, which a test holds against nothing.
export async function open(t, address, { width = 1280, height = 800, scheme = "light", prepare = undefined } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  t.after(() => context.close());
  const page = await context.newPage();
  page.wrong = [];
  page.on("pageerror", (e) => page.wrong.push(e.message));
  page.on("console", (m) => m.type() === "error" && page.wrong.push(m.text()));
  page.on("dialog", (d) => page.wrong.push("a dialog: " + d.message()));
  await prepare?.(page);
  await page.goto(address);
  return page;
}
