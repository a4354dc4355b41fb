import { type Fault } from "./api";
import { h, signal } from "./dom";
import { fault } from "./drawer";

// confirm asks before something is done, and shows what became of it.
export function confirm(title: string, text: string | (() => string), verb: string, act: () => Promise<void>) {
  const failed = signal<Fault | null>(null), busy = signal(false);
  const d = h("dialog", { "aria-label": title, onclose: () => d.remove() },
    h("h2", null, title), h("p", null, text), () => failed() && fault(failed()!),
    h("p", { class: "acts" },
      h("button", { onclick: () => d.close() }, "Back"),
      h("button", { class: "primary", disabled: () => busy(), onclick: () => {
        busy.set(true);
        act().then(() => d.close(), (e: Fault) => (failed.set(e), busy.set(false)));
      } }, verb)));
  document.body.append(d);
  d.showModal();
}
