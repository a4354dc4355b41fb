// What is shown stands in the address, so that it can be sent to somebody and gone back to.
import { signal } from "./dom";

export interface Place { path: string[]; query: URLSearchParams }

const read = (): Place => ({
  path: location.pathname.split("/").filter(Boolean).map(decodeURIComponent),
  query: new URLSearchParams(location.search),
});

export const place = signal<Place>(read());

addEventListener("popstate", () => place.set(read()));

// go leads somewhere; "replace" where going back is not to come here.
export function go(address: string, replace = false): void {
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  place.set(read());
}

// param returns one of the address's parameters, "" for none.
export const param = (name: string) => place().query.get(name) ?? "";

// address returns that of here with other parameters; an empty one is left out.
export function address(changes: Record<string, string>): string {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  return location.pathname + (text ? "?" + text : "");
}

export const set = (changes: Record<string, string>, replace = false) => go(address(changes), replace);

// The key of a run needs no escaping: it has letters, digits and some of "_-.=".
export const runAddress = (key: string, step = "") =>
  "/runs/" + key + (step ? "?step=" + encodeURIComponent(step) : "");

// Links within the page lead there without loading it anew.
addEventListener("click", (e) => {
  if (e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const link = (e.target as Element).closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  e.preventDefault();
  go(link.pathname + link.search);
});
