/**
 * Owns: the tools that run in this process, by conversation, and the short way to stop them. The worker that takes a
 * Stop kills its own tools before the server has received the Stop, and tells the other workers (db/orders.ts). The
 * server's cancel comes in any case.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { ToolToStop } from "../protocol/activities.ts";
import { CANCEL_ARRIVES_MS } from "../protocol/timing.ts";

type Running = { readonly operationId: string; readonly controller: AbortController };

export class RunningTools {
  readonly #running = new Map<string, Set<Running>>();

  stop(tools: readonly ToolToStop[]): void {
    for (const { conversationId, operationId } of tools) {
      for (const running of this.#running.get(conversationId) ?? []) {
        // An order may come late: it must not stop a later tool of the conversation.
        if (operationId === null || operationId === running.operationId) running.controller.abort();
      }
    }
  }

  /**
   * Runs a tool of a conversation with a signal that either way of stopping aborts. A tool that was stopped the short
   * way is not answered before the server's cancel has come. Until then its conversation would take it for a lost tool.
   */
  async run<T>(
    { conversationId, operationId }: { readonly conversationId: string; readonly operationId: string },
    cancelled: AbortSignal,
    tool: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const running = { operationId, controller };
    const all = this.#running.get(conversationId) ?? new Set();
    this.#running.set(conversationId, all.add(running));
    try {
      const answer = await tool(AbortSignal.any([cancelled, controller.signal]));
      if (controller.signal.aborted)
        await delay(CANCEL_ARRIVES_MS, undefined, { signal: cancelled }).catch(() => undefined);
      return answer;
    } finally {
      all.delete(running);
      if (all.size === 0) this.#running.delete(conversationId);
    }
  }
}
