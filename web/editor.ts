// A text area in which what is wrong is marked: a copy of its text lies behind it, with marks. A text that is large has
// none, since each of them would be laid out anew.
import { h } from "./dom";

// Mark is a part of the text, as places of it; one without a length is the character that it stands at.
export interface Mark { from: number; to: number; kind: "wrong" | "odd" }

const large = 200_000;

export class Editor {
  readonly area: HTMLTextAreaElement;
  readonly element: HTMLElement;
  private readonly behind = h("pre", { class: "behind", "aria-hidden": "true" });

  constructor(label: string, text: string, changed: () => void) {
    this.area = h("textarea", { class: "code", "aria-label": label, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", oninput: (() => (this.mark([]), changed())) as never, onscroll: (() => this.follow()) as never });
    this.area.value = text;
    this.element = h("div", { class: "editor" }, this.behind, this.area);
  }

  get text() { return this.area.value; }
  set text(text: string) {
    this.area.value = text;
    this.mark([]);
  }

  // mark shows marks in the text as it is now.
  mark(marks: Mark[]) {
    this.area.setAttribute("aria-invalid", String(marks.some((m) => m.kind === "wrong")));
    const text = this.text, parts: Node[] = [];
    let at = 0;
    if (text.length <= large) for (const m of [...marks].sort((a, b) => a.from - b.from || a.to - b.to)) {
      const from = Math.max(at, m.from), to = Math.max(m.to, m.from + 1);
      if (to <= from) continue; // it lies in the one before
      parts.push(document.createTextNode(text.slice(at, from)), h("mark", { class: m.kind }, text.slice(from, to) || " "));
      at = to;
    }
    this.behind.replaceChildren(...(parts.length ? [...parts, document.createTextNode(text.slice(at) + "\n")] : []));
    this.follow();
  }

  private follow() {
    this.behind.scrollTop = this.area.scrollTop;
    this.behind.scrollLeft = this.area.scrollLeft;
  }

  // lead selects a part of the text, and has it seen.
  lead(from: number, to: number) {
    this.area.focus();
    this.area.setSelectionRange(from, Math.max(from, to));
    const line = parseFloat(getComputedStyle(this.area).lineHeight), above = this.text.slice(0, from).split("\n").length - 1;
    if (line) this.area.scrollTop = Math.max(0, above * line - this.area.clientHeight / 2);
  }
}

// units returns what places in bytes of a text are in its own units.
export function units(text: string, bytes: number[]): number[] {
  const all = new TextEncoder().encode(text);
  if (all.length === text.length) return bytes;
  const decoder = new TextDecoder();
  return bytes.map((b) => decoder.decode(all.subarray(0, b)).length);
}
