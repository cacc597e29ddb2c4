/**
 * Owns: the end of a conversation whose context is full (REQ-BED-019 to 021, 023, 024): the request for a summary, and
 * the summary with which the conversation ends.
 */
import type { Inheritance, StateOf, SummarySource, ToolCall } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import type { RunStopReason, TokenUsage } from "./message.ts";
import { hold, inherit } from "./queue.ts";
import type { Rejection } from "./rejection.ts";
import { closeRun } from "./run.ts";
import { bounded, SUMMARY_BYTES } from "./size.ts";
import { countUsage } from "./count-usage.ts";
import { addTokens } from "./usage.ts";
import { summaries, toPerson } from "./wording.ts";

/** REQ-BED-020: requests the summary. The prompt names the calls that will not run. */
export function startContinuation(draft: Draft, rejectedToolCalls: readonly ToolCall[]): void {
  requestContinuation(draft, { rejectedToolCalls, triggerUsage: draft.conversation.lastUsage }, 1);
}

/**
 * Requests the summary, for the first time or again, under a new generation id.
 *
 * @param lost how often in a row the same attempt was lost
 */
export function requestContinuation(draft: Draft, cause: Cause, attempt: number, lost = 0): void {
  const { rejectedToolCalls, triggerUsage } = cause;
  const requestId = draft.newId();
  draft.setState({
    kind: "awaiting_continuation",
    rejectedToolCalls,
    triggerUsage,
    attempt,
    lost,
    requestId,
    retry: null,
  });
  draft.start({ kind: "request_continuation", requestId, attempt, rejectedToolCalls });
}

/** REQ-BED-023: a person starts the continuation, from idle or after an error, at any usage. */
export function onTriggerContinuation(draft: Draft): Rejection | null {
  if (draft.context.isSubAgent) return { code: "sub_agent_read_only", message: toPerson.subAgentReadOnly };
  switch (draft.state.kind) {
    case "idle":
    case "error":
      if (!draft.conversation.hasMessages)
        return { code: "nothing_to_summarise", message: toPerson.nothingToSummarise };
      startContinuation(draft, []);
      return null;
    case "context_exhausted":
      return { code: "context_exhausted", message: toPerson.contextExhausted };
    case "cancelling":
      return { code: "cancellation_in_progress", message: toPerson.cancelling };
    case "awaiting_continuation":
      return { code: "agent_busy", message: toPerson.summarising };
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
    case "completed":
    case "failed":
      return { code: "agent_busy", message: toPerson.agentBusy };
  }
}

/** A blank summary counts as a failure. */
export function onSummary(draft: Draft, state: Pending, response: Response): void {
  countUsage(draft, response);
  const texts = response.content.flatMap((block) =>
    typeof block["text"] === "string" ? [block["text"]] : [],
  );
  const summary = texts.join("\n\n").trim();
  if (summary === "") return failContinuation(draft, state);
  exhaust(draft, bounded(summary, SUMMARY_BYTES), addTokens(state.triggerUsage, response.usage), "model");
}

export function failContinuation(draft: Draft, state: Pending): void {
  exhaust(draft, summaries.fallback, state.triggerUsage, "failed");
}

export function cancelContinuation(draft: Draft, state: Pending): void {
  exhaust(draft, summaries.cancelled, state.triggerUsage, "cancelled");
}

/** The first event of a conversation that continues another one. */
export function onContinued(draft: Draft, { seed, queue }: Inheritance): void {
  if (seed !== null) draft.appendSystemMessage(seed.text, seed.source);
  inherit(draft, queue);
}

type Response = Extract<ConversationEvent, { kind: "llm_response" }>;
type Pending = StateOf<"awaiting_continuation">;
type Cause = Pick<Pending, "rejectedToolCalls" | "triggerUsage">;

const ENDS = { model: "completed", failed: "error", cancelled: "interrupted" } as const satisfies Record<
  SummarySource,
  RunStopReason
>;

/**
 * A continuation that a person started belongs to no run and stops none. Steers stay in the queue as well: no model
 * would read them here, so they go along into the conversation that continues this one.
 */
function exhaust(draft: Draft, summary: string, finalUsage: TokenUsage, source: SummarySource): void {
  const actor = source === "model" ? "llm_agent" : "system";
  draft.append({ type: "continuation", actor, content: [{ summary }] });
  if (draft.conversation.run !== null) closeRun(draft, ENDS[source]);
  hold(draft, "context_exhausted");
  draft.setState({ kind: "context_exhausted", summary, source, finalUsage });
  draft.notify({ name: "context.exhausted", data: { summary, source } });
}
