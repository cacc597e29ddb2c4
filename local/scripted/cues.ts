/**
 * Owns: the actions of a script besides sending content: wait for the test, pause, break off.
 * A cue stands wherever content can stand: before the headers, between blocks, or inside a block.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ErrorType } from "./messages.ts";

/**
 * A place where the answer stops until the test releases it; the client's abort and the server's end release it, too.
 * With `pingEveryMs` the open stream gets pings meanwhile.
 */
export class Hold {
  readonly kind = "hold";
  readonly pingEveryMs: number | null;
  /** Resolves when an answer has reached this place. */
  readonly reached: Promise<void>;
  readonly #released: Promise<void>;
  #reach: () => void = () => undefined;
  #release: () => void = () => undefined;

  constructor(options: { readonly pingEveryMs?: number } = {}) {
    this.pingEveryMs = options.pingEveryMs ?? null;
    this.reached = new Promise((resolve) => (this.#reach = resolve));
    this.#released = new Promise((resolve) => (this.#release = resolve));
  }

  /** Lets the answer go on, now or when it comes here. */
  release(): void {
    this.#release();
  }

  /** Waits for the release, and calls `ping` meanwhile. Returns early when aborted. */
  async wait(signal: AbortSignal, ping: () => void): Promise<void> {
    this.#reach();
    const timer = this.pingEveryMs === null ? null : setInterval(ping, this.pingEveryMs);
    try {
      await Promise.race([this.#released, aborted(signal)]);
    } finally {
      if (timer !== null) clearInterval(timer);
    }
  }
}

export type Cue =
  | Hold
  | { readonly kind: "pause"; readonly ms: number }
  /** An `error` event in the stream, which ends it; before the headers, an error response. */
  | { readonly kind: "fail"; readonly type: ErrorType; readonly message: string }
  /** Cuts the connection without sending anything more. */
  | { readonly kind: "drop" }
  /** The response ends in good order, but too early: no further event, no message_stop. */
  | { readonly kind: "end" };

/** Stops the answer here until `release()`. */
export const hold = (options?: { readonly pingEveryMs?: number }): Hold => new Hold(options);
/** Pauses the answer. Milliseconds. */
export const pause = (ms: number): Cue => ({ kind: "pause", ms });
export const failHere = (type: ErrorType = "overloaded_error", message = "Overloaded"): Cue => ({
  kind: "fail",
  type,
  message,
});
export const dropHere: Cue = { kind: "drop" };
export const endHere: Cue = { kind: "end" };

/** Resolves after `ms`, or at once when aborted. */
export async function delay(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
