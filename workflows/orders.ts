/** Owns: what of a transition's effects is done when: what ends at once, and what begins with or after the commit. */
import type { Effect, Operation } from "../machine/effect.ts";

export type Orders = {
  /** Operations to end, by generation id. */
  readonly aborts: readonly string[];
  readonly subAgentsToCancel: readonly string[];
  readonly operations: readonly Operation[];
};

export function ordersOf(effects: readonly Effect[]): Orders {
  const aborts: string[] = [];
  const subAgentsToCancel: string[] = [];
  const operations: Operation[] = [];
  for (const effect of effects) {
    switch (effect.kind) {
      case "abort":
        aborts.push(effect.operationId);
        break;
      case "cancel_sub_agent":
        subAgentsToCancel.push(effect.id);
        break;
      case "request_llm":
      case "request_continuation":
      case "execute_tool":
      case "schedule_retry":
      case "spawn_sub_agent":
        operations.push(effect);
        break;
      case "persist_state":
      case "persist_message":
      case "notify_client":
      // A sub-agent's outcome is the result of its workflow (conversation.ts).
      case "notify_parent":
        break;
    }
  }
  return { aborts, subAgentsToCancel, operations };
}
