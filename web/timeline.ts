// A run over time: what each step waited for, and when it executed.
import { effect, ended, h, signal } from "./dom";
import { count, duration } from "./format";
import { over, type Model } from "./model";
import { canvas, dragged, fit, tone, type Paint } from "./paint";
import type { Shared } from "./run";

const line = 24, head = 28;

export function timeline(m: Shared): HTMLElement {
  const deep = signal<boolean | null>(null), path = signal<number[]>([]);
  let rows: number[] = [], place = new Map<number, number>(), on = new Set<number>();
  let again = 0, t0 = 0, t1 = 0, whole = true; // what is shown of the time, in milliseconds since the run was submitted
  const e = h("canvas", { class: "time", "aria-hidden": "true" });
  const spacer = h("div", { class: "spacer" });
  const box = h("div", { class: "scroll", tabindex: 0, role: "application", "aria-label": "Timeline of the run's steps. Arrows up and down choose a step, Enter opens it, plus, minus and 0 zoom. The same is under Steps as a table.", onkeydown: ((k: KeyboardEvent) => key(k)) as never, onscroll: (() => paint.ask()) as never }, spacer);
  const paint = canvas(e, (p) => draw(p));
  ended(() => (clearTimeout(again), paint.end()));
  const label = () => Math.min(200, e.clientWidth * 0.34);

  const zoom = (factor: number, at = (t0 + t1) / 2) => {
    const end = m.model()?.end ?? 1, width = Math.min(end, Math.max(0.5, (t1 - t0) / factor));
    whole = width >= end;
    t0 = Math.max(0, Math.min(end - width, at - ((at - t0) / (t1 - t0)) * width));
    t1 = t0 + width;
    paint.ask();
  };
  const reveal = (k: number) => {
    const y = k * line, tall = box.clientHeight - head;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + line > box.scrollTop + tall) box.scrollTop = y + line - tall;
  };
  const key = (k: KeyboardEvent) => {
    if (k.metaKey || k.ctrlKey || k.altKey) return;
    const model = m.model(), at = place.get(model?.rows.get(m.step()) ?? -1) ?? -1;
    const jump = ({ ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 } as Record<string, number>)[k.key];
    if (jump && rows.length && model) {
      const next = Math.max(0, Math.min(rows.length - 1, at + jump));
      m.choose(model.sheet.steps.id[rows[next]]);
      reveal(next);
    } else if (k.key === "Enter") m.enter();
    else if (k.key === "+" || k.key === "=") zoom(1.5);
    else if (k.key === "-") zoom(1 / 1.5);
    else if (k.key === "0") zoom(1e-9);
    else if (k.key === "ArrowLeft" || k.key === "ArrowRight") pan(((k.key === "ArrowRight" ? 1 : -1) * (t1 - t0)) / 8);
    else return;
    k.preventDefault();
  };
  const pan = (by: number) => {
    const end = m.model()?.end ?? 1, width = t1 - t0;
    t0 = Math.max(0, Math.min(end - width, t0 + by));
    t1 = t0 + width;
    paint.ask();
  };
  dragged(box, {
    move(dx, dy) {
      pan((-dx / Math.max(1, e.clientWidth - label())) * (t1 - t0));
      box.scrollTop -= dy;
    },
    tap(_x, y) {
      const model = m.model(), k = Math.floor((y - head + box.scrollTop) / line);
      if (model && y > head && rows[k] !== undefined) m.choose(model.sheet.steps.id[rows[k]]);
    },
    spread: (factor) => zoom(factor),
  });
  box.addEventListener("wheel", (w) => {
    if (!w.ctrlKey && !w.metaKey) return;
    w.preventDefault();
    const x = w.clientX - box.getBoundingClientRect().left - label();
    zoom(Math.exp(-w.deltaY / 200), t0 + (x / Math.max(1, e.clientWidth - label())) * (t1 - t0));
  }, { passive: false });

  const draw = (p: Paint) => {
    const model = m.model();
    if (!model) return;
    if (whole) { t0 = 0; t1 = model.end; }
    const { c } = p, l = label(), x = (t: number) => l + ((t - t0) / (t1 - t0)) * (p.width - l - 8);
    c.textBaseline = "middle";
    axis(p, l, x);
    c.save();
    c.beginPath();
    c.rect(0, head, p.width, p.height - head);
    c.clip();
    const first = Math.floor(box.scrollTop / line), chosen = model.rows.get(m.step());
    for (let k = first; k < rows.length && head + k * line - box.scrollTop < p.height; k++) {
      bar(p, model, rows[k], head + k * line - box.scrollTop, l, x, rows[k] === chosen);
    }
    c.restore();
    if (!model.over && !again) again = window.setTimeout(() => ((again = 0), paint.ask()), 200); // what goes on grows
  };
  const axis = (p: Paint, l: number, x: (t: number) => number) => {
    const { c } = p, step = nice((t1 - t0) / Math.max(2, (p.width - l) / 110));
    c.font = `11px ${p.font}`;
    for (let t = Math.ceil(t0 / step) * step; t <= t1 && step > 0; t += step) {
      c.fillStyle = p.color("line");
      c.fillRect(Math.round(x(t)), 0, 1, p.height);
      c.fillStyle = p.color("faint");
      if (x(t) < p.width - 44) c.fillText(t === 0 ? "0" : duration(t), x(t) + 4, head / 2);
    }
    c.fillStyle = p.color("border");
    c.fillRect(0, head - 1, p.width, 1);
  };
  const bar = (p: Paint, model: Model, i: number, y: number, l: number, x: (t: number) => number, chosen: boolean) => {
    const { c } = p, s = model.sheet.steps, status = model.status(i), h0 = line - 10;
    if (chosen) { c.fillStyle = p.color("chosen"); c.fillRect(0, y, p.width, line); }
    const piece = (from: number, to: number, color: string, thin = 0) => {
      const a = Math.max(l, x(from)), b = Math.min(p.width, Math.max(x(to), x(from) + (thin ? 0 : 2)));
      if (b <= a) return;
      c.fillStyle = p.color(color);
      c.fillRect(a, y + 5 + thin, b - a, h0 - 2 * thin);
    };
    const end = s.decided[i] >= 0 ? s.decided[i] : over(status) ? -1 : model.end;
    if (s.ready[i] >= 0) {
      piece(0, s.ready[i], "blocked", 6);
      let at = s.ready[i];
      const tries = model.attempts(i);
      tries.forEach(([from, to], k) => {
        piece(at, from, k ? "retry" : "wait", 3);
        piece(from, to, k < tries.length - 1 || status === "failed" ? "bad" : tone(status) === "ok" ? "ok" : "run", model.below[i].length ? 5 : 0);
        at = to;
      });
      if (end > at) piece(at, end, over(status) ? "blocked" : status === "retrying" ? "retry" : status === "running" ? "run" : "wait", 3);
    } else if (status === "asking") { // it was asked once all before it was over, and what it stands in had begun
      const from = Math.max(0, s.ready[s.parent[i]] ?? 0, ...model.deps[i].map((d) => s.decided[d]));
      piece(0, from, "blocked", 6);
      piece(from, end, "wait", 3);
    } else if (end >= 0) piece(0, end, "blocked", 6);
    c.fillStyle = p.color("bg");
    c.fillRect(0, y, l, line);
    if (chosen) { c.fillStyle = p.color("chosen"); c.fillRect(0, y, l, line); }
    c.font = `${on.has(i) ? 600 : 400} 12px ${p.font}`;
    c.fillStyle = status === "failed" ? p.color("bad") : over(status) || status === "running" ? p.color("text") : p.color("faint");
    const left = 8 + 12 * model.depth(i);
    c.fillText(fit(c, (on.has(i) ? "◆ " : "") + model.label(i), l - left - 6), left, y + line / 2);
  };

  effect(() => {
    const model = m.model();
    m.changed();
    if (!model) return;
    const s = model.sheet.steps, below = deep() ?? model.drawn.length > model.top.length; // an agent is what its rounds are
    const start = (i: number) => (s.ready[i] >= 0 ? s.ready[i] : Infinity);
    const order = (list: number[]): number[] => [...list].sort((a, b) => start(a) - start(b) || a - b).flatMap((i) => (below ? [i, ...order(model.below[i])] : [i]));
    rows = order(model.top);
    place = new Map(rows.map((i, k) => [i, k]));
    const critical = model.over ? model.critical() : [];
    on = new Set(critical);
    path.set(critical);
    spacer.style.height = `${Math.max(0, rows.length * line + head)}px`;
    paint.ask();
  });
  let revealed = "";
  effect(() => {
    const at = place.get(m.model()?.rows.get(m.step()) ?? -1);
    if (at !== undefined && m.step() !== revealed) reveal(at);
    if (at !== undefined) revealed = m.step(); // from then on the view is the reader's
    paint.ask();
  });
  return h("div", { class: "timeline" },
    h("div", { class: "legend" },
      () => sums(m.model(), path()),
      ...([["blocked", "waits for steps"], ["wait", "waits for a worker or a person"], ["run", "executes"], ["ok", "succeeded"], ["bad", "failed"], ["retry", "backoff"]] as const).map(
        ([color, text]) => h("span", { class: "key" }, h("i", { class: "swatch", "data-color": color }), text)),
      h("label", null, h("input", { type: "checkbox", checked: () => deep() ?? (m.model()?.drawn.length ?? 0) > (m.model()?.top.length ?? 0), onchange: ((v: Event) => deep.set((v.target as HTMLInputElement).checked)) as never }), "items and plans within")),
    h("div", { class: "timebox" }, e, box));
}

// sums tells what the length of a run comes of, along its critical path.
function sums(m: Model | null, path: number[]) {
  if (!m || !path.length) return null;
  const t = { running: 0, waiting: 0, backoff: 0 };
  for (const i of path) {
    const x = m.times(i);
    t.running += x.running;
    t.waiting += x.waiting;
    t.backoff += x.backoff;
  }
  return h("b", { title: "The steps that the run's length follows from, marked ◆" }, `◆ Critical path: ${count(path.length, "step")}, executing ${duration(t.running)}, waiting for workers ${duration(t.waiting)}`,
    t.backoff > 0 && `, backoff ${duration(t.backoff)}`);
}

// nice returns the next round length of time.
function nice(ms: number): number {
  const units = [1, 1000, 60_000, 3600_000, 86_400_000];
  const unit = units.filter((u) => u <= ms).pop() ?? 0.001;
  for (const k of [1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000]) if (k * unit >= ms) return k * unit;
  return Math.ceil(ms / unit) * unit;
}
