/** Owns: the measurements while neighbours attack: memory of worker and API, and how soon Temporal answers. */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Product } from "../test/support/product.ts";

const NAMES = ["worker", "api"] as const;
const LOOK_MS = 200;

export type Measured = {
  /** Peak resident memory of each, in megabytes. */
  readonly memoryMb: Readonly<Record<(typeof NAMES)[number], number>>;
  /** The longest time, in milliseconds, that Temporal took to describe a conversation's workflow. */
  readonly slowestMs: number;
  /** Processes that had died, and were replaced. */
  readonly died: readonly string[];
};

export class Watch {
  readonly #product: Product;
  readonly #id: string;
  #measured = nothing();

  /** @param id of the conversation about which Temporal is asked */
  constructor(product: Product, id: string) {
    this.#product = product;
    this.#id = id;
  }

  /** The measurements since the last call. */
  take(): Measured {
    const measured = this.#measured;
    this.#measured = nothing();
    return measured;
  }

  async run(over: AbortSignal): Promise<void> {
    await Promise.all([this.#weigh(over), this.#ask(over)]);
  }

  async #weigh(over: AbortSignal): Promise<void> {
    const first = new Map(NAMES.map((name) => [name, this.#pidOf(name)]));
    while (!over.aborted) {
      for (const name of NAMES) {
        const pid = this.#pidOf(name);
        const { memoryMb, died } = this.#measured;
        if (pid !== first.get(name) && !died.includes(name)) died.push(name);
        memoryMb[name] = Math.max(memoryMb[name], residentMb(pid));
      }
      await pause(LOOK_MS);
    }
  }

  async #ask(over: AbortSignal): Promise<void> {
    const handle = this.#product.temporal.workflow.getHandle(this.#id);
    while (!over.aborted) {
      const asked = performance.now();
      await handle.describe().catch(() => undefined);
      this.#measured.slowestMs = Math.max(this.#measured.slowestMs, performance.now() - asked);
      await pause(LOOK_MS);
    }
  }

  #pidOf(name: (typeof NAMES)[number]): number | null {
    try {
      return this.#product.pidOf(name);
    } catch {
      return null;
    }
  }
}

const nothing = () => ({ memoryMb: { worker: 0, api: 0 }, slowestMs: 0, died: [] as string[] });

function residentMb(pid: number | null): number {
  try {
    const status = readFileSync(`/proc/${pid ?? 0}/status`, "utf8");
    return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}
