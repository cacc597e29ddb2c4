/**
 * Owns: handling a person's message (REQ-BED-002; docs/machine.md, "Messages while busy"): it starts a run, waits
 * visibly (queue.ts), or is rejected.
 */
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import { enqueue } from "./queue.ts";
import type { Rejection } from "./rejection.ts";
import { startRun } from "./run.ts";
import { toPerson } from "./wording.ts";

type UserMessage = Extract<ConversationEvent, { kind: "user_message" }>;

export function onUserMessage(draft: Draft, message: UserMessage): Rejection | null {
  if (draft.context.isSubAgent) return { code: "sub_agent_read_only", message: toPerson.subAgentReadOnly };
  // A repeat of a message that waits must not be queued a second time.
  if (draft.conversation.queue.some((waiting) => waiting.messageId === message.messageId)) return null;
  const { kind } = draft.state;
  switch (kind) {
    case "idle":
    case "error":
      startRun(draft, { ...message, delivery: "direct" });
      return null;
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
      return enqueue(draft, message, { code: "agent_busy", message: toPerson.agentBusy });
    case "cancelling": {
      const refusal: Rejection = { code: "cancellation_in_progress", message: toPerson.cancelling };
      return message.delivery === "steer" ? refusal : enqueue(draft, message, refusal);
    }
    case "awaiting_continuation":
      return { code: "agent_busy", message: toPerson.summarising };
    case "completed":
    case "failed":
      return { code: "agent_busy", message: toPerson.agentBusy };
    case "context_exhausted":
      return { code: "context_exhausted", message: toPerson.contextExhausted };
  }
}
