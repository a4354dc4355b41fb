// Steps that a planner hands over before its answer is whole (docs/protocol.md#steps-before-an-answer-is-whole).
import { setTimeout as sleep } from "node:timers/promises";
import { headers, type NatsConnection } from "@nats-io/transport-node";

/** A tool: arguments and result are JSON, the signal says that nobody waits any more. A planner may hand over steps. */
export type Tool = (args: string, signal: AbortSignal, nc: NatsConnection, stream: Stream) => Promise<string>;

/** Hands over steps of an answer. No step is ever lost by it: what it does not hand over begins once the answer is whole. */
export class Stream {
  private queue: object[] = [];
  private sending: Promise<void> | undefined;
  private over = false;

  /** subject is where steps are handed over, empty where no agent asks for it; claim claims the attempt, once. */
  constructor(private nc: NatsConnection, private subject: string, private nonce: string, private claim: () => Promise<boolean>) {
    this.over = subject === "";
  }

  /** Hands over a step, as it stands in a plan, behind those that it refers to. It waits for nothing. */
  step(step: object): void {
    if (this.over) return;
    this.queue.push(step);
    this.sending ??= this.send().catch(() => this.close()).finally(() => (this.sending = undefined));
  }

  /** The answer is whole, or nobody waits for it any more. */
  close(): void {
    this.over = true;
  }

  private async send(): Promise<void> {
    await sleep(5); // what comes right behind goes together
    if (!(await this.claim())) this.close();
    while (!this.over && this.queue.length > 0) {
      let size = 0; // at most 256 steps, and 256 KiB with a single one or less than half of it
      const more = this.queue.findIndex((step, n) => (size += JSON.stringify(step).length) > 131_072 && n > 0);
      const add = this.queue.splice(0, more < 0 ? 256 : Math.min(more, 256));
      for (let asked = false; !asked && !this.over; ) asked = await this.hand(add);
    }
  }

  /** Asks the owner of the run once. False: nobody has answered, so the same is to be asked again. */
  private async hand(add: object[]): Promise<boolean> {
    const h = headers();
    h.set("Stepjet-Version", "1");
    const body = JSON.stringify({ nonce: this.nonce, add });
    const said = await this.nc.request(this.subject, body, { headers: h, timeout: 2000 }).catch(() => sleep(50, null));
    if (said?.headers?.get("Stepjet-Status") === "error") this.close(); // the attempt is over, or takes nothing
    return said !== null;
  }
}
