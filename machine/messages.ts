/**
 * Owns: handling a person's message (REQ-BED-002; docs/machine.md, "Messages while busy"): it starts a run, waits
 * visibly, or is rejected. There is no hidden queue.
 */
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import type { Rejection } from "./rejection.ts";
import { startRun } from "./run.ts";
import { jsonBytes, QUEUE_BYTES } from "./size.ts";
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

/** Only a message that still waits can be withdrawn. */
export function onWithdraw(draft: Draft, messageId: string): Rejection | null {
  const { queue } = draft.conversation;
  const rest = queue.filter((message) => message.messageId !== messageId);
  if (rest.length === queue.length) return { code: "already_delivered", message: toPerson.alreadyDelivered };
  draft.set({ queue: rest });
  return null;
}

function enqueue(draft: Draft, message: UserMessage, refusal: Rejection): Rejection | null {
  const { messageId, text, images, delivery } = message;
  if (delivery === "direct") return refusal;
  const { queue } = draft.conversation;
  const { queued } = draft.context.limits;
  if (queue.length >= queued) return { code: "queue_full", message: toPerson.queueFull(queued) };
  const longer = [...queue, { messageId, delivery, text, images, createdAt: draft.time }];
  if (queue.length > 0 && jsonBytes(longer) > QUEUE_BYTES) {
    return { code: "queue_full", message: toPerson.queueTooLong };
  }
  draft.set({ queue: longer });
  return null;
}
