// What a graph is made of, without a browser: which steps are one box, and where the boxes stand.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";

const web = new URL("..", import.meta.url).pathname, out = mkdtempSync(join(tmpdir(), "stepjet-web-"));
after(() => rmSync(out, { recursive: true }));
execFileSync(process.execPath, [join(web, "node_modules/typescript/bin/tsc"), "-p", web, "--noEmit", "false", "--outDir", out]);
writeFileSync(join(out, "package.json"), '{"type": "module"}');
for (const name of readdirSync(out)) if (name.endsWith(".js")) writeFileSync(join(out, name), readFileSync(join(out, name), "utf8").replace(/ from "(\.\/\w+)"/g, ' from "$1.js"')); // as node names them
const { boxesOf } = await import(join(out, "graph.js")), { layout } = await import(join(out, "layout.js")), { Model } = await import(join(out, "model.js"));

// model makes a run: n roots, a middle step for each, and one that waits for all of these.
function model(n, status) {
  const id = [], deps = [], tool = [], statuses = ["succeeded", "failed", "skipped"], of = [];
  for (let i = 0; i < n; i++) (id.push("root" + i), deps.push([]), tool.push(0), of.push(statuses.indexOf(status(i))));
  for (let i = 0; i < n; i++) (id.push("mid" + i), deps.push([i]), tool.push(1), of.push(statuses.indexOf(status(n + i))));
  id.push("end");
  deps.push(Array.from({ length: n }, (_, i) => n + i));
  tool.push(2);
  of.push(0);
  const all = (x) => id.map(() => x);
  return new Model({
    key: "default.x", run: "x", tenant: "default", status: "partial", submitted: "2026-01-01T00:00:00Z", finished: "2026-01-01T00:01:00Z", stats: {}, now: "2026-01-01T00:01:00Z",
    tools: ["fetch", "sum", "end"], statuses, codes: ["tool_failed"],
    steps: { id, deps, tool, status: of, code: of.map((s) => (s === 1 ? 0 : -1)), attempts: all(1), ready: all(0), started: all(0), ended: all(1), decided: all(1), bytes: all(0), parent: all(-1) },
  });
}
const rows = (boxes) => boxes.flatMap((b) => b.rows).sort((a, b) => a - b);
const every = (m) => m.drawn.map((_, i) => i);

test("up to 300 steps each is its own box", () => {
  const m = model(149, () => "succeeded"), boxes = boxesOf(m, new Set());
  assert.equal(m.drawn.length, 299);
  assert.equal(boxes.length, 299);
});

test("beyond, what succeeded alike in a wave is one box, what failed stays open", () => {
  const m = model(500, (i) => (i < 20 ? "failed" : i === 500 + 30 ? "skipped" : "succeeded")), boxes = boxesOf(m, new Set());
  assert.deepEqual(rows(boxes), every(m), "each step stands in one box");
  const large = boxes.filter((b) => b.rows.length > 1);
  assert.deepEqual(large.map((b) => b.rows.length).sort((a, b) => a - b), [480, 499]);
  for (const b of large) for (const i of b.rows) assert.equal(m.status(i), "succeeded");
  assert.equal(boxes.filter((b) => b.rows.length === 1 && m.status(b.rows[0]) === "failed").length, 20, "each failure is to be seen");
  assert.equal(boxes.length, 2 + 20 + 1 + 1);
  const opened = boxesOf(m, new Set([large[0].key]));
  assert.equal(opened.length, boxes.length - 1 + large[0].rows.length, "a box opens when it is chosen, and that one alone");
  assert.deepEqual(rows(opened), every(m));
});

test("more than 40 failures of a kind are one box as well", () => {
  const boxes = boxesOf(model(500, (i) => (i < 41 ? "failed" : "succeeded")), new Set());
  assert.deepEqual(boxes.map((b) => b.rows.length).sort((a, b) => a - b), [1, 41, 459, 500]);
});

test("each box stands behind all that it waits for, in a place of its own", () => {
  let seed = 5;
  const random = (below) => ((seed = (seed * 1103515245 + 12345) % 2147483648) >> 8) % below;
  const deps = Array.from({ length: 400 }, (_, i) => (i < 10 ? [] : [...new Set([random(i), random(i), random(i)])]));
  const l = layout(deps);
  deps.forEach((list, i) => list.forEach((d) => assert.ok(l.wave[d] < l.wave[i], `${i} stands before ${d}`)));
  const places = new Set(l.wave.map((w, i) => `${w}/${l.place[i]}`));
  assert.equal(places.size, 400, "no two boxes share a place");
  assert.deepEqual(l.waves.flat().sort((a, b) => a - b), deps.map((_, i) => i));
});

test("lines that need not cross do not", () => {
  const l = layout([[], [], [], [2], [1], [0]]);
  for (const [up, down] of [[2, 3], [1, 4], [0, 5]]) assert.equal(l.place[up], l.place[down], "each stands beside what it waits for");
});
