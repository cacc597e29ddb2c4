/**
 * Owns: the tools that run in this process, by conversation, and the short way to stop them: a Stop that is taken here
 * kills them before the server has heard of it. The server's cancel comes in any case, and reaches those elsewhere.
 */
import { setTimeout as delay } from "node:timers/promises";
import { CANCEL_ARRIVES_MS } from "../protocol/timing.ts";

export class RunningTools {
  readonly #stops = new Map<string, Set<AbortController>>();

  stop(conversationIds: readonly string[]): void {
    for (const id of conversationIds) for (const controller of this.#stops.get(id) ?? []) controller.abort();
  }

  /**
   * Runs a tool of a conversation with a signal that either way of stopping aborts. One that was stopped the short way
   * is not answered before its cancel has come: till then its conversation would take it for a tool that was lost.
   */
  async run<T>(
    conversationId: string,
    cancelled: AbortSignal,
    tool: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const all = this.#stops.get(conversationId) ?? new Set();
    this.#stops.set(conversationId, all.add(controller));
    try {
      const answer = await tool(AbortSignal.any([cancelled, controller.signal]));
      if (controller.signal.aborted)
        await delay(CANCEL_ARRIVES_MS, undefined, { signal: cancelled }).catch(() => undefined);
      return answer;
    } finally {
      all.delete(controller);
      if (all.size === 0) this.#stops.delete(conversationId);
    }
  }
}
