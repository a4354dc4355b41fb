// A run as a graph: its steps in waves. What is alike is one box where there are many, and what failed is shown open.
import { ended, h, effect } from "./dom";
import { count, duration, marks, words } from "./format";
import { depths, layout } from "./layout";
import { type Model } from "./model";
import { canvas, dragged, fit, tone, type Paint } from "./paint";
import type { Shared } from "./run";

const W = 176, H = 46, GX = 46, GY = 14;
// From how many boxes on alike ones become one, and how many alike ones may stay apart.
const many = 300, apart = 3, failedApart = 40;

export interface Box { rows: number[]; key: string; x: number; y: number; wave: number; deps: number[] }

export function graph(m: Shared): HTMLElement {
  const open = new Set<string>();
  let boxes: Box[] = [], boxOf = new Map<number, number>(), from: Model | null = null;
  let scale = 1, ox = 0, oy = 0, placed = false, shown = "";
  const spoken = h("p", { class: "hidden", role: "status" });
  const e = h("canvas", { class: "graph", tabindex: 0, role: "application", "aria-label": "Graph of the run's steps. Arrows move along it, Enter opens a step, plus, minus and 0 zoom. The same is under Steps as a table.", onkeydown: ((k: KeyboardEvent) => key(k)) as never });
  const paint = canvas(e, (p) => draw(p));
  ended(paint.end);

  const arrange = (model: Model) => {
    boxes = boxesOf(model, open);
    boxOf = new Map();
    boxes.forEach((b, k) => b.rows.forEach((i) => boxOf.set(i, k)));
    boxes.forEach((b, k) => (b.deps = [...new Set(b.rows.flatMap((i) => model.deps[i].map((d) => boxOf.get(d)!)))].filter((d) => d !== undefined && d !== k)));
    const l = layout(boxes.map((b) => b.deps));
    boxes.forEach((b, k) => ((b.wave = l.wave[k]), (b.x = l.wave[k] * (W + GX)), (b.y = l.place[k] * (H + GY))));
    from = model;
  };
  const all = () => {
    const box = e.getBoundingClientRect();
    if (!box.width || !boxes.length) return;
    const right = Math.max(...boxes.map((b) => b.x)) + W;
    const top = Math.min(...boxes.map((b) => b.y)), bottom = Math.max(...boxes.map((b) => b.y)) + H;
    scale = Math.min(1, (box.width - 48) / right, (box.height - 48) / (bottom - top));
    if (placed || scale < 0.35) scale = placed ? Math.max(scale, 0.02) : 0.7;
    ox = right * scale < box.width ? (box.width - right * scale) / 2 : 24;
    oy = (bottom - top) * scale < box.height ? (box.height - (bottom - top) * scale) / 2 - top * scale : 24 - top * scale;
    if (!placed && (bottom - top) * scale > box.height) oy = box.height / 2 - ((top + bottom) / 2) * scale;
    placed = true;
    paint.ask();
  };
  const show = (k: number) => {
    const box = e.getBoundingClientRect(), b = boxes[k];
    const x = b.x * scale + ox, y = b.y * scale + oy;
    if (x < 8) ox += 8 - x;
    if (x + W * scale > box.width - 8) ox -= x + W * scale - box.width + 8;
    if (y < 8) oy += 8 - y;
    if (y + H * scale > box.height - 8) oy -= y + H * scale - box.height + 8;
  };
  const zoom = (factor: number, x?: number, y?: number) => {
    const box = e.getBoundingClientRect(), next = Math.max(0.02, Math.min(2, scale * factor));
    x ??= box.width / 2;
    y ??= box.height / 2;
    ox = x - ((x - ox) / scale) * next;
    oy = y - ((y - oy) / scale) * next;
    scale = next;
    paint.ask();
  };
  const choose = (k: number) => {
    const b = boxes[k], model = from!;
    if (b.rows.length === 1) m.choose(model.sheet.steps.id[b.rows[0]]);
    else {
      open.add(b.key);
      arrange(model);
      const first = boxOf.get(b.rows[0])!;
      m.choose(model.sheet.steps.id[b.rows[0]]);
      show(first);
    }
    paint.ask();
  };
  const key = (k: KeyboardEvent) => {
    if (k.metaKey || k.ctrlKey || k.altKey || !boxes.length) return;
    if (k.key === "+" || k.key === "=") zoom(1.25);
    else if (k.key === "-") zoom(0.8);
    else if (k.key === "0") all();
    else if (k.key === "Enter") m.enter();
    else if (k.key.startsWith("Arrow")) step(k.key);
    else return;
    k.preventDefault();
  };
  const step = (arrow: string) => {
    const i = from!.rows.get(m.step()), k = i === undefined ? undefined : boxOf.get(top(from!, i));
    let next = 0;
    if (k !== undefined) {
      const b = boxes[k], near = (list: number[]) => list.sort((a, c) => Math.abs(boxes[a].y - b.y) - Math.abs(boxes[c].y - b.y))[0] ?? k;
      const side = (below: boolean) => near(boxes.flatMap((o, j) => (o.wave === b.wave && (below ? o.y > b.y : o.y < b.y) ? [j] : [])));
      next = arrow === "ArrowLeft" ? near([...b.deps]) : arrow === "ArrowRight" ? near(boxes.flatMap((o, j) => (o.deps.includes(k) ? [j] : []))) : side(arrow === "ArrowDown");
    }
    choose(next);
    show(next);
    const r = boxes[next].rows[0];
    spoken.textContent = `${from!.label(r)}, ${from!.tool(r)}, ${from!.status(r)}`;
  };
  const hit = (x: number, y: number) => {
    const gx = (x - ox) / scale, gy = (y - oy) / scale;
    return boxes.findIndex((b) => gx >= b.x && gx <= b.x + W && gy >= b.y && gy <= b.y + H);
  };
  dragged(e, {
    move(dx, dy) { ox += dx; oy += dy; paint.ask(); },
    tap(x, y) {
      const k = hit(x, y);
      if (k >= 0) choose(k);
    },
    spread: zoom,
  });
  e.addEventListener("wheel", (w) => {
    w.preventDefault();
    const box = e.getBoundingClientRect();
    if (w.ctrlKey || w.metaKey) zoom(Math.exp(-w.deltaY / 200), w.clientX - box.left, w.clientY - box.top);
    else { ox -= w.deltaX; oy -= w.deltaY; paint.ask(); }
  }, { passive: false });

  const draw = (p: Paint) => {
    const model = m.model();
    if (!model || !boxes.length) return;
    if (!placed) { all(); }
    const { c } = p, i = model.rows.get(m.step()), chosen = i === undefined ? -1 : boxOf.get(top(model, i)) ?? -1;
    c.save();
    c.translate(ox, oy);
    c.scale(scale, scale);
    const left = -ox / scale, up = -oy / scale, right = left + p.width / scale, low = up + p.height / scale;
    const seen = (b: Box) => b.x < right && b.x + W > left && b.y < low && b.y + H > up;
    lines(c, p, model, chosen, left, right, up, low);
    boxes.forEach((b, k) => seen(b) && box(c, p, model, b, k === chosen));
    c.restore();
  };
  const lines = (c: CanvasRenderingContext2D, p: Paint, model: Model, chosen: number, left: number, right: number, up: number, low: number) => {
    const kinds: [string, Path2D][] = [["edge", new Path2D()], ["bad", new Path2D()], ["accent", new Path2D()]];
    boxes.forEach((b, k) => b.deps.forEach((d) => {
      const o = boxes[d], x1 = o.x + W, y1 = o.y + H / 2, x2 = b.x, y2 = b.y + H / 2;
      if (x1 > right || x2 < left || Math.max(y1, y2) < up || Math.min(y1, y2) > low) return;
      const bad = model.status(o.rows[0]) === "failed";
      const path = kinds[k === chosen || d === chosen ? 2 : bad ? 1 : 0][1], bend = Math.max(28, (x2 - x1) / 2);
      path.moveTo(x1, y1);
      path.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    }));
    kinds.forEach(([name, path], n) => {
      c.strokeStyle = p.color(name);
      c.lineWidth = (n ? 1.8 : 1.2) / Math.max(scale, 0.4);
      c.stroke(path);
    });
  };
  const box = (c: CanvasRenderingContext2D, p: Paint, model: Model, b: Box, chosen: boolean) => {
    const i = b.rows[0], status = model.status(i), color = p.color(tone(status)), group = b.rows.length > 1;
    if (scale < 0.3) {
      c.fillStyle = color;
      c.fillRect(b.x, b.y, W, H);
      if (chosen) { c.strokeStyle = p.color("accent"); c.lineWidth = 4 / scale; c.strokeRect(b.x, b.y, W, H); }
      return;
    }
    if (group) {
      c.fillStyle = p.color("card");
      c.strokeStyle = p.color("border");
      round(c, b.x + 5, b.y + 5, W, H);
    }
    c.fillStyle = p.color("card");
    c.strokeStyle = chosen ? p.color("accent") : p.color("border");
    c.lineWidth = chosen ? 2.5 : 1;
    if (status === "skipped" || status === "not_taken" || status === "waiting") c.setLineDash([4, 3]);
    round(c, b.x, b.y, W, H);
    c.setLineDash([]);
    c.fillStyle = color;
    c.fillRect(b.x + 1, b.y + 6, 4, H - 12);
    c.font = `600 13px ${p.font}`;
    c.textBaseline = "middle";
    c.fillText(marks[status] ?? "", b.x + 13, b.y + 16);
    c.fillStyle = p.color("text");
    const tool = model.tool(i);
    c.fillText(fit(c, group ? `${tool || "values"} ×${b.rows.length.toLocaleString("en")}` : (model.call(i)?.name ?? model.sheet.steps.id[i]), W - 42), b.x + 32, b.y + 16);
    c.font = `12px ${p.font}`;
    c.fillStyle = p.color("faint");
    c.fillText(fit(c, group ? `${words[status] ?? status}; open` : under(model, i, tool), W - 42), b.x + 32, b.y + 33);
  };

  effect(() => {
    const model = m.model();
    m.changed();
    if (model && (model !== from || boxes.length === 0)) arrange(model);
    else if (model && model.drawn.length > many) arrange(model); // what is alike may have changed
    const i = model?.rows.get(m.step()), k = model && i !== undefined ? boxOf.get(top(model, i)) : undefined;
    if (k !== undefined && placed && m.step() !== shown) show(k);
    shown = m.step(); // from then on the view is the reader's
    paint.ask();
  });
  return h("div", { class: "canvas" }, e, spoken,
    h("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
      h("button", { onclick: () => zoom(1.25), "aria-label": "Larger" }, "+"), h("button", { onclick: () => zoom(0.8), "aria-label": "Smaller" }, "−"),
      h("button", { onclick: all, "aria-label": "All of it" }, "⤢")));
}

// top returns the step that is drawn for one that stands below it.
function top(m: Model, i: number): number {
  while (m.sheet.steps.parent[i] >= 0 && !m.drawn.includes(i)) i = m.sheet.steps.parent[i];
  return i;
}

// under is the second line of a box.
function under(m: Model, i: number, tool: string): string {
  const below = m.below[i], ran = m.times(i).running;
  const rounds = m.rounds(i).length;
  if (rounds) return `${tool} · ${count(rounds, "round")}`;
  const at = m.call(i), round = at ? `round ${at.round} · ` : "";
  if (!below.length) return round + (tool || "value") + (ran > 0 ? " · " + duration(ran) : "");
  const bad = below.filter((k) => m.status(k) === "failed").length;
  return `${round}${tool || (round ? "" : "plan")}${tool || !round ? " · " : ""}${below.length} below${bad ? `, ${bad} failed` : ""}`;
}

// boxesOf says which steps are one box: each its own, and where there are many, those that are alike and not open.
export function boxesOf(m: Model, open: Set<string>): Box[] {
  const box = (rows: number[], key: string): Box => ({ rows, key, x: 0, y: 0, wave: 0, deps: [] });
  if (m.drawn.length <= many) return m.drawn.map((i) => box([i], ""));
  const at = new Map(m.drawn.map((i, k) => [i, k]));
  const wave = depths(m.drawn.map((i) => m.deps[i].flatMap((d) => at.get(d) ?? [])));
  const groups = new Map<string, number[]>();
  m.drawn.forEach((i, k) => {
    const key = `${wave[k]}/${m.tool(i)}/${m.status(i)}/${m.code(i)}`;
    groups.set(key, [...(groups.get(key) ?? []), i]);
  });
  return [...groups].flatMap(([key, rows]) => {
    const most = m.status(rows[0]) === "failed" ? failedApart : apart;
    return rows.length <= most || open.has(key) ? rows.map((i) => box([i], key)) : [box(rows, key)];
  });
}

function round(c: CanvasRenderingContext2D, x: number, y: number, w: number, t: number) {
  c.beginPath();
  c.roundRect(x, y, w, t, 8);
  c.fill();
  c.stroke();
}
