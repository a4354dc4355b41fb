// What the page is built with: elements, values that are followed, and lists that keep their elements. Text becomes text
// nodes and nothing else: what runs hold is anybody's.

export type Child = Node | string | number | null | undefined | false | (() => Child) | Child[];
type Attribute = string | number | boolean | null | undefined | ((e: never) => void) | (() => unknown);

// A value that is followed: reading it within an effect has the effect run again when it changes.
export interface Signal<T> {
  (): T;
  set(value: T): void;
  peek(): T;
}

interface Effect {
  run(): void;
  sources: Set<Set<Effect>>;
}

let active: Effect | null = null;
let owner: (() => void)[] | null = null; // what ends with the scope that is being built

export function signal<T>(value: T): Signal<T> {
  const readers = new Set<Effect>();
  const read = () => {
    if (active) {
      readers.add(active);
      active.sources.add(readers);
    }
    return value;
  };
  return Object.assign(read, {
    peek: () => value,
    set(next: T) {
      if (Object.is(value, next)) return;
      value = next;
      for (const e of [...readers]) if (readers.has(e)) e.run(); // one that ended meanwhile is not
    },
  });
}

// effect runs now, and again whenever a signal that it read has changed, until its scope ends.
export function effect(body: () => void): void {
  const e: Effect = {
    sources: new Set(),
    run() {
      for (const readers of e.sources) readers.delete(e);
      e.sources.clear();
      const before = active;
      active = e;
      try {
        body();
      } finally {
        active = before;
      }
    },
  };
  ended(() => e.sources.forEach((readers) => readers.delete(e)));
  e.run();
}

// ended has something done when the scope ends that is being built.
export function ended(end: () => void): void {
  owner?.push(end);
}

// scope builds something whose effects end with it.
function scope<T>(build: () => T): { made: T; end: () => void } {
  const ends: (() => void)[] = [], before = owner;
  owner = ends;
  try {
    return { made: build(), end: () => ends.splice(0).forEach((f) => f()) };
  } finally {
    owner = before;
  }
}

// quietly builds something that is not built again when what it reads meanwhile changes.
export function quietly<T>(build: () => T): T {
  const before = active;
  active = null;
  try {
    return build();
  } finally {
    active = before;
  }
}

// h makes an element. Attributes that begin with "on" are listeners; other functions are followed.
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, Attribute> | null, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value as EventListener);
    else if (typeof value === "function") effect(() => attribute(e, name, (value as () => unknown)()));
    else attribute(e, name, value);
  }
  append(e, children);
  return e;
}

function attribute(e: HTMLElement, name: string, value: unknown) {
  if (name === "value") {
    if (e !== document.activeElement) (e as HTMLInputElement).value = String(value ?? ""); // not while somebody types
  } else if (name === "checked" || name === "disabled" || name === "selected") (e as HTMLInputElement & { [k: string]: unknown })[name] = !!value;
  else if (value === false || value == null) e.removeAttribute(name);
  else e.setAttribute(name, value === true ? "" : String(value));
}

export function append(parent: Node, children: Child[]): void {
  for (const c of children) {
    if (Array.isArray(c)) append(parent, c);
    else if (typeof c === "function") follow(parent, c);
    else if (c instanceof Node) parent.appendChild(c);
    else if (c != null && c !== false) parent.appendChild(document.createTextNode(String(c)));
  }
}

// follow keeps what a function returns between two marks of its parent.
function follow(parent: Node, child: () => Child) {
  const end = parent.appendChild(document.createComment(""));
  let shown: { made: ChildNode[]; end: () => void } | null = null;
  effect(() => {
    shown?.end();
    shown?.made.forEach((n) => n.remove());
    shown = scope(() => {
      const box = document.createDocumentFragment();
      append(box, [child()]);
      return [...box.childNodes];
    });
    end.before(...shown.made);
  });
  ended(() => shown?.end());
}

// keyed keeps one element for each item of a list, in its order, and its focus with it.
export function keyed<T>(parent: Element, items: T[], key: (x: T) => string, make: (x: T) => [HTMLElement, (x: T) => void]) {
  const kept = ((parent as { kept?: Map<string, [HTMLElement, (x: T) => void]> }).kept ??= new Map());
  const now = new Set(items.map(key));
  for (const [k, [e]] of kept) if (!now.has(k)) (e.remove(), kept.delete(k));
  let at: Element | null = parent.firstElementChild;
  for (const x of items) {
    let row = kept.get(key(x));
    if (!row) kept.set(key(x), (row = make(x)));
    row[1](x);
    if (at === row[0]) at = row[0].nextElementSibling;
    else parent.insertBefore(row[0], at);
  }
}
