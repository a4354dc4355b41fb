// What canvases have in common: their size, their colours and how they are moved.

export interface Paint { c: CanvasRenderingContext2D; width: number; height: number; color(name: string): string; font: string }

// canvas draws into a canvas whenever it is asked to, at most once a frame, and when its size or the colours change.
export function canvas(e: HTMLCanvasElement, draw: (p: Paint) => void): { ask(): void; end(): void } {
  let asked = 0;
  const paint = () => {
    asked = 0;
    const box = e.getBoundingClientRect(), scale = devicePixelRatio || 1;
    if (!box.width || !box.height) return;
    const w = Math.round(box.width * scale), tall = Math.round(box.height * scale);
    if (e.width !== w || e.height !== tall) (e.width = w), (e.height = tall);
    const c = e.getContext("2d")!, style = getComputedStyle(e), colors = new Map<string, string>();
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    const color = (name: string) => {
      if (!colors.has(name)) colors.set(name, style.getPropertyValue("--" + name).trim() || "#888");
      return colors.get(name)!;
    };
    draw({ c, width: box.width, height: box.height, color, font: style.fontFamily });
  };
  const ask = () => {
    asked ||= requestAnimationFrame(paint);
  };
  const size = new ResizeObserver(ask);
  size.observe(e);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", ask);
  return {
    ask,
    end() {
      cancelAnimationFrame(asked);
      size.disconnect();
      dark.removeEventListener("change", ask);
    },
  };
}

// tone names the colour of a status.
export const tone = (status: string) =>
  ({ succeeded: "ok", failed: "bad", cancelled: "bad", running: "run", retrying: "retry", ready: "wait", asking: "wait" })[status] ?? "idle";

// fit shortens a text to a width.
export function fit(c: CanvasRenderingContext2D, text: string, width: number): string {
  if (c.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if (c.measureText(text.slice(0, mid) + "…").width <= width) low = mid;
    else high = mid - 1;
  }
  return text.slice(0, low) + "…";
}

// dragged tells how a pointer moves while it is down, where it was let go without moving, and how two fingers spread.
export function dragged(e: HTMLElement, on: { move(dx: number, dy: number): void; tap(x: number, y: number): void; spread?(factor: number, x: number, y: number): void }) {
  const down = new Map<number, { x: number; y: number }>();
  let moved = 0;
  const at = (p: PointerEvent) => {
    const box = e.getBoundingClientRect();
    return { x: p.clientX - box.left, y: p.clientY - box.top };
  };
  const apart = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.x - b.x, a.y - b.y) || 1;
  };
  e.addEventListener("pointerdown", (p) => {
    if (p.button || at(p).x > e.clientWidth) return; // that is a scroll bar
    moved = down.size ? 99 : 0;
    down.set(p.pointerId, at(p));
    e.setPointerCapture(p.pointerId);
  });
  e.addEventListener("pointermove", (p) => {
    const from = down.get(p.pointerId);
    if (!from) return;
    const to = at(p), before = down.size > 1 ? apart() : 0;
    down.set(p.pointerId, to);
    moved += Math.abs(to.x - from.x) + Math.abs(to.y - from.y);
    if (down.size > 1) {
      const [a, b] = [...down.values()];
      on.spread?.(apart() / before, (a.x + b.x) / 2, (a.y + b.y) / 2);
    } else if (moved > 4) on.move(to.x - from.x, to.y - from.y);
  });
  const up = (p: PointerEvent) => {
    if (!down.delete(p.pointerId)) return;
    if (p.type === "pointerup" && moved <= 4) on.tap(at(p).x, at(p).y);
  };
  e.addEventListener("pointerup", up);
  e.addEventListener("pointercancel", up);
}
