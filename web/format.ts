// How things are written, and what stands for a status.
import { h } from "./dom";
import { now, tick, type Problem } from "./api";

// A status is told by a shape, a word and a colour, so that none of them is needed to know it.
export const marks: Record<string, string> = {
  running: "▶", succeeded: "✓", partial: "◐", failed: "✕", cancelled: "■", expired: "◔", rejected: "⊘",
  waiting: "·", asking: "?", ready: "○", retrying: "↻", skipped: "↷", not_taken: "–",
};

export const words: Record<string, string> = { not_taken: "not taken", asking: "waits for a person", ready: "waits for a worker" };

export function badge(status: string) {
  return h("span", { class: "badge", "data-status": status }, h("i", { "aria-hidden": "true" }, marks[status] ?? "?"),
    words[status] ?? status);
}

export function duration(ms: number): string {
  if (!(ms >= 0)) return "–";
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(2) : s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(time: string): string {
  const ms = now() - Date.parse(time);
  if (ms < -5000) return "in the future";
  return ms < 5000 ? "now" : span(ms) + " ago";
}

// span tells a time that goes on, in whole units of the one that fits.
export function span(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

export const moment = (time: string) =>
  new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });

// when tells how long ago something was, as time goes on.
export function when(time: string) {
  return h("time", { datetime: time, title: moment(time) }, () => (tick(), ago(time)));
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1 << 20) return `${(bytes / 1024).toFixed(bytes < 10240 ? 1 : 0)} KiB`;
  return `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

export function problem(p: Problem) {
  return h("div", { class: "fault" }, h("b", null, p.code), p.path && h("code", null, p.path), h("p", null, p.message), p.hint && h("p", { class: "hint" }, "→ ", p.hint));
}

export const count = (n: number, one: string) => `${n.toLocaleString("en")} ${one}${n === 1 ? "" : "s"}`;

// indent lays JSON out without reading it: numbers stay as they were written, and what is cut off stays so.
export function indent(json: string): string {
  let out = "", depth = 0, inside = false;
  for (let i = 0; i < json.length; i++) {
    const c = json[i];
    if (inside) {
      out += c;
      if (c === "\\") out += json[++i] ?? "";
      else if (c === '"') inside = false;
    } else if (c === '"') {
      inside = true;
      out += c;
    } else if (c === "{" || c === "[") {
      const close = c === "{" ? "}" : "]";
      let next = i + 1;
      while (json[next] === " " || json[next] === "\n") next++;
      if (json[next] === close) {
        out += c + close;
        i = next;
      } else out += c + "\n" + "  ".repeat(++depth);
    } else if (c === "}" || c === "]") out += "\n" + "  ".repeat(Math.max(0, --depth)) + c;
    else if (c === ",") out += ",\n" + "  ".repeat(depth);
    else if (c === ":") out += ": ";
    else if (c !== " " && c !== "\n" && c !== "\t" && c !== "\r") out += c;
  }
  return out;
}

// quote writes an argument of a shell's command.
export const quote = (text: string) => (/^[\w./:=@-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");
