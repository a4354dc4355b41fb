// The loop that both peers run: a planner that answers at once with calls, and tools that return texts of a size.
import { appendFileSync } from 'node:fs';

export const calls = 3;

/** fact is what a tool returns: another text of so many bytes in each round. */
export function fact(round, bytes) {
  let n = (round + 1) >>> 0;
  let text = '';
  while (text.length < bytes - 2) {
    n = (Math.imul(n, 1664525) + 1013904223) >>> 0;
    text += n.toString(16).padStart(8, '0') + ' ';
  }
  return text.slice(0, bytes - 2);
}

/** Meter keeps when the planner was asked, and how much of what it read stood at the beginning of what it read before. */
export class Meter {
  at = [];
  input = 0;
  prefix = 0;
  #last = '';

  asked(text) {
    this.at.push(process.hrtime.bigint());
    this.input += text.length;
    let n = 0;
    // Texts here begin with the one before, or don't by a few bytes: the end is looked at first.
    const shared = Math.min(text.length, this.#last.length);
    if (text.startsWith(this.#last.slice(0, -2))) n = Math.max(0, this.#last.length - 2);
    else while (n < shared && text.charCodeAt(n) === this.#last.charCodeAt(n)) n++;
    this.prefix += n;
    this.#last = text;
  }

  figures() {
    const us = this.at.slice(1).map((t, i) => Number((t - this.at[i]) / 1000n));
    return { us, input: this.input, prefix: this.prefix };
  }
}

/** note writes a line to a file, so that it outlives a kill: what was called, and in which round. */
export function note(file, what) {
  if (file) appendFileSync(file, what + '\n');
}

/** dies kills this process when the second tool of a round is called, once: the first has returned by then. */
export function dies(round, call) {
  if (process.env.DIE_IN_ROUND === String(round) && call === 1) process.kill(process.pid, 'SIGKILL');
}
