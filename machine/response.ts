/**
 * Owns: what a response of the model leads to (REQ-BED-003, 019, 024): a round of calls, another request, the
 * end of the run, or the continuation.
 */
import { checkSubmit, SUBMIT_TOOL } from "./control-tools.ts";
import { startContinuation } from "./continuation.ts";
import type { ToolCall } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import { skipAll, startRound } from "./round.ts";
import { hasSteers } from "./queue.ts";
import { failSubAgent, finishRun, requestLlm } from "./run.ts";
import { receiveCalls } from "./tool-ids.ts";
import { isExhausted } from "./usage.ts";
import { countUsage } from "./count-usage.ts";
import { toModel, toPerson } from "./wording.ts";

export type Response = Extract<ConversationEvent, { kind: "llm_response" }>;

/** The answer to the request that the state waits for. It is stored before anything follows from it. */
export function onResponse(draft: Draft, response: Response): void {
  const { content, calls } = receiveCalls(response.content, response.usedToolCallIds, response.defects, () =>
    draft.newId(),
  );
  countUsage(draft, response);
  const { stopReason, usage, requestId, durationMs } = response;
  draft.append({
    type: "agent",
    actor: "llm_agent",
    content,
    usage,
    display: { requestId, stopReason, durationMs },
  });
  const { contextUsed, contextWindow } = draft.conversation.usage;
  const full = isExhausted(contextUsed, contextWindow);
  if (full || stopReason === "model_context_window_exceeded") return endInFullContext(draft, calls);
  if (stopReason === "refusal") return endInRefusal(draft, calls);
  if (calls.length > 0) return startRound(draft, calls);
  if (stopReason === "pause_turn") return requestLlm(draft, 1);
  if (stopReason === "max_tokens") return continueText(draft);
  endTurn(draft);
}

/**
 * REQ-BED-019: none of the calls runs. REQ-BED-024: a sub-agent fails, but a valid result that it submitted is kept.
 */
function endInFullContext(draft: Draft, calls: readonly ToolCall[]): void {
  skipAll(draft, calls, toModel.skippedByContext);
  if (!draft.context.isSubAgent) return startContinuation(draft, calls);
  const submissions = calls.filter((call) => call.name === SUBMIT_TOOL && call.defect === undefined);
  const submitted = submissions.map((call) => checkSubmit(call.input)).find((check) => check.ok);
  failSubAgent(draft, {
    error: toPerson.contextFull,
    errorKind: "context_exhausted",
    ...(submitted?.ok === true ? { partialResult: submitted.value.result } : {}),
  });
}

function endInRefusal(draft: Draft, calls: readonly ToolCall[]): void {
  skipAll(draft, calls, toModel.skippedByRefusal);
  draft.appendNote(toPerson.refused);
  endTurn(draft);
}

/** Asks the model to continue a text that the output limit cut off, a bounded number of times. */
function continueText(draft: Draft): void {
  const truncations = draft.conversation.run?.truncations ?? 0;
  if (truncations >= draft.context.limits.truncations) {
    draft.appendNote(toPerson.cutOff);
    return endTurn(draft);
  }
  draft.setRun({ truncations: truncations + 1 });
  draft.appendSystemMessage(toModel.continueText);
  requestLlm(draft, 1);
}

/** A steer that waits prolongs the run. A sub-agent that has not submitted is reminded, and fails in the end. */
function endTurn(draft: Draft): void {
  if (hasSteers(draft)) return requestLlm(draft, 1);
  if (!draft.context.isSubAgent) return finishRun(draft, "completed");
  const reminders = draft.conversation.run?.reminders ?? 0;
  if (reminders >= draft.context.limits.reminders) {
    return failSubAgent(draft, { error: toPerson.notSubmitted, errorKind: "unknown" });
  }
  draft.setRun({ reminders: reminders + 1 });
  draft.appendSystemMessage(toModel.remindToSubmit);
  requestLlm(draft, 1);
}
