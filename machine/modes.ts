/**
 * Owns: how the mode changes (REQ-BED-015, 016, 017): up only by the person's approval, down at any time. A system
 * message tells the model of either change.
 */
import type { Decision, Sandbox, StateOf } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import type { Rejection } from "./rejection.ts";
import { advance, answerCall, type CallRun } from "./round.ts";
import { toModel, toPerson } from "./wording.ts";

type DecisionEvent = Extract<ConversationEvent, { readonly kind: "user_decide_upgrade" }>;

/** The first decision on a call wins; repeating that decision gets the same answer. */
export function onDecision(draft: Draft, { decision, toolCallId, by }: DecisionEvent): Rejection | null {
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
  if (decision === "approve") approve(draft, state, by);
  else deny(draft, state, by);
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

/** @param by who, by name; undefined: not known */
function approve(draft: Draft, state: StateOf<"awaiting_mode_approval">, by: string | undefined): void {
  draft.set({ mode: "unrestricted" });
  const person = by === undefined ? {} : { person: by };
  draft.notify({ name: "mode.changed", data: { mode: "unrestricted", by: "approval", ...person } });
  const answer = answerCall(
    draft,
    state.toolCall,
    "completed",
    toModel.upgradeApproved(by),
    decidedRun("approve", by),
  );
  draft.appendSystemMessage(toModel.nowUnrestricted(by));
  advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
}

function deny(draft: Draft, state: StateOf<"awaiting_mode_approval">, by: string | undefined): void {
  draft.setRun({ upgradeDenied: true });
  const { toolCall } = state;
  const answer = answerCall(draft, toolCall, "failed", toModel.upgradeDenied(by), decidedRun("deny", by));
  advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
}

const decidedRun = (decision: Decision, by: string | undefined): CallRun => ({
  durationMs: 0,
  decided: by === undefined ? { decision } : { decision, by },
});
