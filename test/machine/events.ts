/** Owns: builders of events. Their generation ids are those of the states in states.ts. */
import type { Sandbox, ToolCall } from "../../machine/conversation.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import { usage } from "./states.ts";

type EventOf<K extends ConversationEvent["kind"]> = Extract<ConversationEvent, { kind: K }>;

export const say = (messageId = "m1", fields: Partial<EventOf<"user_message">> = {}): ConversationEvent => ({
  kind: "user_message",
  messageId,
  text: `text of ${messageId}`,
  images: [],
  delivery: "direct",
  ...fields,
});
export const steer = (id: string): ConversationEvent => say(id, { delivery: "steer" });
export const followUp = (id: string): ConversationEvent => say(id, { delivery: "followUp" });
export const withdraw = (messageId: string): ConversationEvent => ({ kind: "withdraw_message", messageId });
export const cancel = (fields: Partial<EventOf<"user_cancel">> = {}): ConversationEvent => ({
  kind: "user_cancel",
  queue: "run",
  by: "user",
  ...fields,
});
export const approve = (toolCallId: string | null = "u1"): ConversationEvent => ({
  kind: "user_decide_upgrade",
  decision: "approve",
  toolCallId,
});
export const deny = (toolCallId: string | null = "u1"): ConversationEvent => ({
  kind: "user_decide_upgrade",
  decision: "deny",
  toolCallId,
});
export const downgradeOn = (sandbox: Sandbox): ConversationEvent => ({
  kind: "user_request_downgrade",
  sandbox,
});
export const downgrade = downgradeOn({ kind: "available", abi: 7 });
export const trigger: ConversationEvent = { kind: "user_trigger_continuation" };
export const restarted = (policy: "idle" | "resume"): ConversationEvent => ({ kind: "restarted", policy });

/** A response: a text, then these calls; it ends the turn if there are none. */
export function response(
  calls: readonly ToolCall[] = [],
  fields: Partial<EventOf<"llm_response">> = {},
): EventOf<"llm_response"> {
  const blocks = calls.map(({ id, name, input }) => ({ type: "tool_use", id, name, input }));
  return {
    kind: "llm_response",
    requestId: "request",
    content: [{ type: "text", text: "Hello." }, ...blocks],
    stopReason: calls.length > 0 ? "tool_use" : "end_turn",
    usage: usage(),
    durationMs: 5,
    defects: [],
    usedToolCallIds: [],
    ...fields,
  };
}

export const summaryOf = (text: string, fields: Partial<EventOf<"llm_response">> = {}): ConversationEvent =>
  response([], { requestId: "summary", content: [{ type: "text", text }], ...fields });

export const requestFailed = (fields: Partial<EventOf<"llm_failed">> = {}): ConversationEvent => ({
  kind: "llm_failed",
  requestId: "request",
  errorKind: "network",
  message: "connection reset",
  retryable: true,
  retryAfterMs: null,
  ...fields,
});
export const lost = (requestId = "request"): ConversationEvent => ({ kind: "llm_lost", requestId });
export const retryDue = (requestId = "request"): ConversationEvent => ({ kind: "retry_due", requestId });
export const toolDone = (
  text = "output",
  fields: Partial<EventOf<"tool_completed">> = {},
): ConversationEvent => ({
  kind: "tool_completed",
  operationId: "operation",
  status: "completed",
  output: [{ type: "text", text }],
  durationMs: 7,
  ...fields,
});
export const childDone = (id: string, result = `result of ${id}`): ConversationEvent => ({
  kind: "sub_agent_finished",
  id,
  outcome: { success: true, result },
});
export const childFailed = (id: string): ConversationEvent => ({
  kind: "sub_agent_finished",
  id,
  outcome: { error: "broken", errorKind: "unknown" },
});
