/**
 * Owns: how the mode changes (REQ-BED-015, 016, 017): up only by the person's approval, down at any time. A system
 * message tells the model of either change.
 */
import type { Decision, Sandbox, StateOf } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { Rejection } from "./rejection.ts";
import { advance, answerCall } from "./round.ts";
import { toModel, toPerson } from "./wording.ts";

/** The first decision on a call wins; repeating that decision gets the same answer. */
export function onDecision(draft: Draft, decision: Decision, toolCallId: string | null): Rejection | null {
  const { state, conversation } = draft;
  if (state.kind === "context_exhausted")
    return { code: "context_exhausted", message: toPerson.contextExhausted };
  const last = conversation.lastDecision;
  if (last !== null && last.toolCallId === toolCallId && last.decision === decision) return null;
  if (state.kind !== "awaiting_mode_approval") {
    return { code: "no_pending_approval", message: toPerson.noPendingApproval };
  }
  if (toolCallId !== null && toolCallId !== state.toolCall.id) {
    return { code: "approval_mismatch", message: toPerson.approvalMismatch(state.toolCall.id) };
  }
  draft.set({ lastDecision: { toolCallId: state.toolCall.id, decision } });
  if (decision === "approve") approve(draft, state);
  else deny(draft, state);
  return null;
}

/** Applies from the next tool on; a running tool is not affected. */
export function onDowngrade(draft: Draft, sandbox: Sandbox): Rejection | null {
  const { context, conversation, state } = draft;
  if (context.isSubAgent) return { code: "sub_agent_read_only", message: toPerson.subAgentReadOnly };
  if (sandbox.kind === "unavailable")
    return { code: "sandbox_unavailable", message: toPerson.sandboxUnavailable };
  if (sandbox.kind === "unknown")
    return { code: "sandbox_unknown", message: toPerson.sandboxUnknown(sandbox.reason) };
  if (state.kind === "context_exhausted")
    return { code: "context_exhausted", message: toPerson.contextExhausted };
  if (conversation.mode === "restricted") return null;
  draft.set({ mode: "restricted" });
  draft.appendSystemMessage(toModel.nowRestricted);
  draft.notify({ name: "mode.changed", data: { mode: "restricted", by: "user" } });
  return null;
}

function approve(draft: Draft, state: StateOf<"awaiting_mode_approval">): void {
  draft.set({ mode: "unrestricted" });
  draft.notify({ name: "mode.changed", data: { mode: "unrestricted", by: "approval" } });
  const answer = answerCall(draft, state.toolCall, "completed", toModel.upgradeApproved);
  draft.appendSystemMessage(toModel.nowUnrestricted);
  advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
}

function deny(draft: Draft, state: StateOf<"awaiting_mode_approval">): void {
  draft.setRun({ upgradeDenied: true });
  const answer = answerCall(draft, state.toolCall, "failed", toModel.upgradeDenied);
  advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
}
