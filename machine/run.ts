/**
 * Owns: the life of a run: its start from a message, each request it makes, its end, and what starts after it.
 * A run goes from its root message to its run_stop (request-cycle model, section 5).
 */
import type { ErrorKind, RunStopReason } from "./message.ts";
import type { QueuedMessage, StateOf, SubAgentOutcome } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import { hold, releaseAfterSuccess, takeNext, takeSteers } from "./queue.ts";
import { toPerson } from "./wording.ts";

type RootMessage = Pick<QueuedMessage, "messageId" | "text" | "images"> & {
  readonly delivery: "direct" | "followUp";
};

/** REQ-BED-002: stores the root message and asks the model. */
export function startRun(draft: Draft, root: RootMessage): void {
  draft.set({
    run: { cycleId: root.messageId, requests: 0, truncations: 0, reminders: 0, upgradeDenied: false },
    hasMessages: true,
  });
  sayUser(draft, root, root.delivery);
  requestLlm(draft, 1);
}

/**
 * Orders the next request under a new generation id, delivers pending steers with it, and enforces the runaway cap.
 *
 * @param lost how often in a row the same attempt was lost
 */
export function requestLlm(draft: Draft, attempt: number, lost = 0): void {
  const requests = draft.conversation.run?.requests ?? 0;
  if (requests >= draft.context.limits.requestsPerRun) {
    failRun(draft, "runaway", toPerson.runaway(requests));
    return;
  }
  deliverSteers(draft);
  draft.setRun({ requests: requests + 1 });
  const requestId = draft.newId();
  draft.setState({ kind: "llm_requesting", attempt, lost, requestId, retry: null });
  draft.start({ kind: "request_llm", requestId, attempt });
}

function deliverSteers(draft: Draft): void {
  for (const steer of takeSteers(draft)) sayUser(draft, steer, "steer");
}

/** Ends the run without an error. The conversation is idle; a follow-up that waits is due (`next_run_due`). */
export function finishRun(draft: Draft, reason: Exclude<RunStopReason, "error">): void {
  stopRun(draft, reason);
  draft.set({ errorsInARow: 0 });
  if (reason === "completed") releaseAfterSuccess(draft);
  draft.setState({ kind: "idle" });
}

/**
 * REQ-BED-006: ends the run with an error that the person sees. A second error in a row holds the queue; so does a key
 * that the provider does not accept, and a limit on spending, because every message would meet them.
 */
export function failRun(draft: Draft, errorKind: ErrorKind, message: string): void {
  if (draft.context.isSubAgent) {
    failSubAgent(draft, { error: message, errorKind });
    return;
  }
  draft.append({ type: "error", actor: "system", content: [{ errorKind, message }] });
  stopRun(draft, "error");
  const errorsInARow = draft.conversation.errorsInARow + 1;
  draft.set({ errorsInARow });
  if (errorKind === "auth" || errorKind === "spending_limit") hold(draft, errorKind);
  else if (errorsInARow >= 2) hold(draft, "errors");
  draft.setState({ kind: "error", message, errorKind });
}

/** Ends the run after a restart, and holds the queue for the person. */
export function interruptRun(draft: Draft): void {
  finishRun(draft, "interrupted");
  hold(draft, "restart");
}

/** Starts the run of the next message that waits, if one is due. */
export function startNext(draft: Draft): void {
  const next = takeNext(draft);
  if (next !== null) startRun(draft, { ...next, delivery: "followUp" });
}

/** Ends the run in the history. Steers that no request has delivered come just before its last message. */
function stopRun(draft: Draft, reason: RunStopReason): void {
  deliverSteers(draft);
  closeRun(draft, reason);
}

/** Stores the run's last message. What waits stays in the queue. */
export function closeRun(draft: Draft, reason: RunStopReason): void {
  draft.append({ type: "run_stop", actor: "system", content: [{ reason }] });
  draft.set({ run: null });
}

/** REQ-BED-008: a sub-agent's success. */
export function completeSubAgent(draft: Draft, outcome: Omit<StateOf<"completed">, "kind">): void {
  stopRun(draft, "completed");
  draft.setState({ kind: "completed", ...outcome });
}

/** REQ-BED-008, 024: a sub-agent's failure; its parent gets it through `outcomeOf`. */
export function failSubAgent(draft: Draft, outcome: Extract<SubAgentOutcome, { error: string }>): void {
  draft.append({
    type: "error",
    actor: "system",
    content: [{ errorKind: outcome.errorKind, message: outcome.error }],
  });
  stopRun(draft, "error");
  draft.setState({ kind: "failed", ...outcome });
}

function sayUser(
  draft: Draft,
  message: Pick<QueuedMessage, "messageId" | "text" | "images">,
  kind: "direct" | "steer" | "followUp",
): void {
  const text = message.text === "" ? [] : [{ type: "text" as const, text: message.text }];
  draft.append(
    { type: "user", actor: "human", content: [...text, ...message.images], display: { kind } },
    message.messageId,
  );
}
