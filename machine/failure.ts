/**
 * Owns: failed requests (REQ-BED-006). The machine retries them with backoff while attempts are left. After that, a run
 * ends in the error state, and a continuation ends with the fallback summary. A request that was lost does not count as
 * an attempt, but is bounded, too.
 */
import { failContinuation, requestContinuation, startContinuation } from "./continuation.ts";
import type { Retry, StateOf } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { ConversationEvent } from "./event.ts";
import { jitterOf, timestamp } from "./ids.ts";
import { failRun, requestLlm } from "./run.ts";
import { toPerson } from "./wording.ts";

export type Failure = Extract<ConversationEvent, { kind: "llm_failed" }>;
type Requesting = StateOf<"llm_requesting"> | StateOf<"awaiting_continuation">;

const FIRST_DELAY_MS = 1_000;
/** Up to this share of the delay is added, so that many conversations do not retry at the same moment. */
const JITTER = 0.25;

/** A failure of the request that the state waits for. */
export function onFailure(draft: Draft, state: Requesting, failure: Failure): void {
  const { limits } = draft.context;
  const patient = (failure.retryAfterMs ?? 0) <= limits.longestRetryMs;
  if (failure.retryable && patient && state.attempt < limits.attempts)
    return scheduleRetry(draft, state, failure);
  if (state.kind === "awaiting_continuation") {
    // Nothing else says why there is no summary, and a person can change it for the next conversation.
    if (failure.errorKind === "spending_limit") draft.appendNote(failure.message);
    return failContinuation(draft, state);
  }
  if (failure.errorKind === "context_exhausted" && !draft.context.isSubAgent)
    return startContinuation(draft, []);
  const message =
    failure.retryable && patient ? toPerson.gaveUp(state.attempt, failure.message) : failure.message;
  failRun(draft, failure.errorKind, message);
}

/**
 * The request was lost with its worker. It is made again as the same attempt, but not for ever: it may be what takes
 * the worker down.
 */
export function onLost(draft: Draft, state: Requesting): void {
  const lost = state.lost + 1;
  if (lost < draft.context.limits.losses) askAgain(draft, state, lost);
  else if (state.kind === "awaiting_continuation") failContinuation(draft, state);
  else failRun(draft, "interrupted", toPerson.lost(lost));
}

/** Requests the same attempt under a new generation id. */
export function askAgain(draft: Draft, state: Requesting, lost = 0): void {
  if (state.kind === "llm_requesting") requestLlm(draft, state.attempt, lost);
  else requestContinuation(draft, state, state.attempt, lost);
}

/** Retry-After is a lower bound of the exponential delay. */
function scheduleRetry(draft: Draft, state: Requesting, failure: Failure): void {
  const backoff = FIRST_DELAY_MS * 2 ** (state.attempt - 1) * (1 + JITTER * jitterOf(draft.stamp));
  const delayMs = Math.round(Math.max(backoff, failure.retryAfterMs ?? 0));
  const attempt = state.attempt + 1;
  const { errorKind, message } = failure;
  const retry: Retry = { at: timestamp(draft.stamp.at + delayMs), errorKind, message };
  const requestId = draft.newId();
  draft.setState({ ...state, attempt, lost: 0, requestId, retry });
  draft.notify({ name: "llm.retry_scheduled", data: { attempt, delayMs, ...retry } });
  draft.start({ kind: "schedule_retry", requestId, delayMs });
}
