// A form for a value that a JSON schema describes. What it writes is JSON as text, so that a number stays as it was
// typed; who asks is the judge of it.
import { h } from "./dom";

export interface Schema {
  type?: string | string[]; title?: string; description?: string; enum?: unknown[]; const?: unknown; default?: unknown;
  properties?: Record<string, Schema>; required?: string[]; format?: string; maxLength?: number;
}

// Field is an input: its element, and the JSON that stands in it; undefined where it was left empty.
export interface Field { element: HTMLElement; json(): string | undefined }

// What was typed is no value: it says where.
export class Unfit extends Error {}

const deepest = 3; // of objects in objects that have inputs of their own

// simple says of a value that it is read and written alike here: a number of more digits than a browser has is not.
const simple = (v: unknown): boolean => v === null || typeof v === "string" || typeof v === "boolean" || (typeof v === "number" && Math.abs(v) < 2 ** 53);

export function field(s: Schema, name: string, needed: boolean, depth = 0): Field {
  const label = s.title || name, note = s.description && h("small", { class: "faint" }, s.description);
  const named = (input: HTMLElement, below?: HTMLElement) => h("label", { class: "field" }, h("span", null, label, needed && h("b", { title: "needed" }, " *")), note, input, below);
  if (s.enum?.length && s.enum.every(simple)) {
    const all = s.enum.map((v) => JSON.stringify(v)), input = h("select", { "aria-label": label }, h("option", { value: "" }, "–"), all.map((v, i) => h("option", { value: v, selected: v === JSON.stringify(s.default) }, word(s.enum![i]))));
    return { element: named(input), json: () => input.value || undefined };
  }
  if (s.type === "object" && s.properties && depth < deepest) {
    const inner = Object.entries(s.properties).map(([key, of]) => [key, field(of, key, !!s.required?.includes(key), depth + 1)] as const);
    return {
      element: h("fieldset", null, depth > 0 && h("legend", null, label), depth > 0 && note, inner.map(([, f]) => f.element)),
      json: () => {
        const all = inner.map(([key, f]) => [key, f.json()] as const).filter(([, v]) => v !== undefined);
        return !all.length && !needed ? undefined : "{" + all.map(([key, v]) => JSON.stringify(key) + ":" + v).join(",") + "}";
      },
    };
  }
  if (s.type === "boolean") {
    const input = h("input", { type: "checkbox", checked: s.default === true });
    return { element: h("label", { class: "field check" }, input, h("span", null, label), note), json: () => String(input.checked) };
  }
  if (s.type === "string") {
    const long = (s.maxLength ?? 0) > 200 || s.format === "markdown";
    const input = long ? h("textarea", { rows: 4 }) : h("input", { type: s.format === "date" ? "date" : "text" });
    input.value = typeof s.default === "string" ? s.default : "";
    return { element: named(input), json: () => (input.value || (needed && depth === 0) ? JSON.stringify(input.value) : undefined) };
  }
  if (s.type === "number" || s.type === "integer") {
    const input = h("input", { type: "text", inputmode: "decimal" });
    input.value = simple(s.default) && s.default !== null ? JSON.stringify(s.default) ?? "" : "";
    return { element: named(input), json: () => checked(label, input.value.trim(), (v) => typeof v === "number", "a number") };
  }
  return json(label, "", s.description);
}

// json is an input for anything.
export function json(label: string, text: string, description?: string): Field {
  const input = h("textarea", { rows: Math.min(16, Math.max(3, text.split("\n").length)), spellcheck: "false", class: "code" });
  input.value = text;
  return {
    element: h("label", { class: "field" }, h("span", null, label), description && h("small", { class: "faint" }, description), input),
    json: () => checked(label, input.value.trim(), () => true, "JSON"),
  };
}

// choice is one out of several values, each JSON as text.
export function choice(label: string, all: string[]): Field {
  const inputs = all.map((v) => h("input", { type: "radio", name: "choice", value: v }));
  return {
    element: h("fieldset", { class: "choice" }, h("legend", null, label), inputs.map((x, i) => h("label", { class: "field check" }, x, h("span", null, word(read(all[i]), all[i]))))),
    json: () => inputs.find((x) => x.checked)?.value,
  };
}

function checked(label: string, text: string, right: (v: unknown) => boolean, what: string): string | undefined {
  if (!text) return undefined;
  try {
    if (right(JSON.parse(text))) return text;
  } catch {
    // it is said below
  }
  throw new Unfit(`${label}: this is not ${what}`);
}

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// word writes a value for people to read: a text without its quotes.
const word = (v: unknown, as = JSON.stringify(v)) => (typeof v === "string" ? v : as);
