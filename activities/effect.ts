/**
 * Owns: "commit before effect, in one activity" (architecture, rules 1 and 2). The activity commits the revisions. Only
 * if the row then waits for this operation does it perform the effect.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Context } from "@temporalio/activity";
import type { commitAndRead, LastRead, WantedSums } from "../db/commit.ts";
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import type { OpenSpan } from "../observability/spans.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import type { Claim } from "../protocol/commit.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { EffectInput, Performed } from "../protocol/activities.ts";
import { isExpired } from "../sandbox/lease.ts";
import { withLease, type ActivityLease } from "./lease.ts";
import { cycleAfter, recordedCommit } from "./recorded-commit.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
const GIVE_UP_AFTER_MS = 8_000;

type Answer = Awaited<ReturnType<typeof commitAndRead>>;

export type EffectDependencies = { readonly db: Database; readonly telemetry: Telemetry };

export type EffectOf<E extends ConversationEvent> = {
  readonly kind: "request" | "tool";
  readonly operationId: string;
  /** The last message that this worker knows: the commit brings the messages after it. */
  readonly lastRead: LastRead | null;
  /** The sums that the commit brings as well; none unless given. */
  readonly sums?: WantedSums | null;
  /** Ends early when the lease's signal is aborted, and still returns an event. */
  readonly perform: (
    lease: ActivityLease,
    read: Pick<Answer, "newMessages" | "sums">,
    span: OpenSpan,
  ) => Promise<{ readonly event: E; readonly outcome: string }>;
};

/** Commits, then performs the effect if the row waits for its operation. */
export function commitThen<E extends ConversationEvent>(
  deps: EffectDependencies,
  input: EffectInput,
  { kind, operationId, lastRead, sums = null, perform }: EffectOf<E>,
): Promise<Performed<E>> {
  const { metrics, spans } = deps.telemetry;
  return withLease(async (lease) => {
    const { currentAttemptScheduledTimestampMs: ordered } = Context.current().info;
    metrics.countWait(kind, Math.max(0, Date.now() - ordered) / 1_000);
    const { conversationId } = input;
    const span = spans.open(kind, { conversationId, cycleId: cycleAfter(input), operationId });
    // Another run of the same activity has another `by`, and only one of them performs.
    const { dispatchAttempt, restarts } = input;
    const claim = { operationId, dispatchAttempt, by: randomUUID(), restarts };
    let outcome = "failed";
    try {
      const answer = await tryCommit(deps, input, { claim, lastRead, sums }, lease.signal);
      if (answer === null) {
        outcome = "not_started";
        return { kind: "not_started" };
      }
      span.mark("committed");
      const { committed } = answer;
      const mine = !committed.diverged && committed.awaits === operationId;
      if (!mine || lease.signal.aborted || isExpired(lease)) {
        outcome = "superseded";
        return { kind: "superseded", committed };
      }
      const performed = await perform(lease, answer, span);
      outcome = performed.outcome;
      return { kind: "done", committed, event: performed.event };
    } finally {
      span.end(outcome);
    }
  });
}

/** null: the database could not be reached in time, or the effect was aborted meanwhile. */
async function tryCommit(
  deps: EffectDependencies,
  input: EffectInput,
  order: { readonly claim: Claim; readonly lastRead: LastRead | null; readonly sums: WantedSums | null },
  signal: AbortSignal,
): Promise<Answer | null> {
  const { conversationId, createInput } = input;
  const deadline = performance.now() + GIVE_UP_AFTER_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      const commit = recordedCommit(deps, conversationId, input, { createInput, ...order });
      return await unlessAborted(commit, signal);
    } catch (error) {
      if (signal.aborted) return null;
      if (!isUnavailable(error)) throw error;
      if (performance.now() + pause > deadline) return null;
      await delay(pause);
    }
  }
}

/** A database that does not answer must not hold up a cancel. If it applies the commit later, that is harmless. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
  });
}
