/**
 * Owns: the tools that run in this process, by conversation, and the short way to stop them. The worker that takes a
 * Stop kills them before the server has received it. The server's cancel comes in any case, and reaches tools in other
 * processes.
 */
import { setTimeout as delay } from "node:timers/promises";
import { CANCEL_ARRIVES_MS } from "../protocol/timing.ts";

export class RunningTools {
  readonly #stops = new Map<string, Set<AbortController>>();

  stop(conversationIds: readonly string[]): void {
    for (const id of conversationIds) for (const controller of this.#stops.get(id) ?? []) controller.abort();
  }

  /**
   * Runs a tool of a conversation with a signal that either way of stopping aborts. A tool that was stopped the short
   * way is not answered before the server's cancel has come. Until then its conversation would take it for a lost tool.
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
