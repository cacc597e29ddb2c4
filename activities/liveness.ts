/**
 * Owns: telling Temporal that an activity lives, and noticing when Temporal must have given it up: a process that
 * was frozen wakes up without knowing it (architecture, rule 2).
 */
import { Context } from "@temporalio/activity";

/** The heartbeat timeout of workflows/activities.ts. */
const HEARTBEAT_TIMEOUT_MS = 2_000;
const BEAT_EVERY_MS = 500;
/** Past this share of the timeout without a beat somebody else may have been put in charge. */
const DOUBTFUL = 0.8;

export type Liveness = {
  /** Aborted by a cancel of the conversation's, a worker's shutdown or a timeout; an activity need not know which. */
  readonly signal: AbortSignal;
  /** True from the moment that a beat came too late to be believed; it never becomes false again. */
  readonly isDoubtful: () => boolean;
};

/** Beats while `body` runs. The first beat is the start of the activity itself. */
export async function withLiveness<T>(body: (liveness: Liveness) => Promise<T>): Promise<T> {
  const context = Context.current();
  let lastBeat = performance.now();
  let doubtful = false;
  // The clock is monotonic and goes on while the process is stopped.
  const isDoubtful = (): boolean =>
    (doubtful ||= performance.now() - lastBeat > DOUBTFUL * HEARTBEAT_TIMEOUT_MS);
  const timer = setInterval(() => {
    if (isDoubtful()) return;
    lastBeat = performance.now();
    context.heartbeat();
  }, BEAT_EVERY_MS);
  try {
    return await body({ signal: context.cancellationSignal, isDoubtful });
  } finally {
    clearInterval(timer);
  }
}
