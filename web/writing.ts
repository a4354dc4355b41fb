// What the models of a run are writing, as it comes: of each step that goes on the last of it, and no longer than that.
import type { Written } from "./api";
import { effect, h, signal, type Signal } from "./dom";
import { over, type Model } from "./model";

const most = 16384; // characters that are kept of one step
const wide = 8; // steps that are shown

export function writing(model: Signal<Model | null>, changed: Signal<number>, choose: (step: string) => void) {
  const texts = new Map<string, Written>(), came = signal(0), steps = signal("");
  const goesOn = (step: string) => {
    const m = model.peek(), i = m?.rows.get(step);
    return !!m && !m.over && (i === undefined || !over(m.status(i)));
  };
  const look = () => {
    for (const step of texts.keys()) if (!goesOn(step)) texts.delete(step);
    steps.set([...texts.keys()].slice(-wide).join("\n"));
  };
  effect(() => (changed(), model(), look()));
  const take = (list: Written[]) => {
    for (const now of list) {
      const before = texts.get(now.step);
      let text = now.text;
      if (before && before.attempt === now.attempt && before.end <= now.at) text = before.text + (before.end < now.at ? " … " : "") + text;
      texts.set(now.step, { ...now, text: text.slice(-most) });
    }
    while (texts.size > 4 * wide) texts.delete(texts.keys().next().value!);
    look();
    came.set(came.peek() + 1);
  };
  const one = (step: string) => {
    const name = () => { // what it is called is known once the run's steps have it
      changed();
      const m = model(), i = m?.rows.get(step);
      return i === undefined ? step : m!.label(i);
    };
    const text = h("pre", { tabindex: 0 }, () => (came(), texts.get(step)?.text ?? ""));
    effect(() => (came(), (text.scrollTop = text.scrollHeight)));
    return h("article", null, h("h2", null, h("button", { class: "link", onclick: () => choose(step) }, name), " writes"), text);
  };
  const shown = () => steps() && h("section", { class: "writing", "aria-label": "What models write" }, steps().split("\n").map(one));
  return { take, shown };
}
