/**
 * Owns: the lease under which an activity works (architecture, rule 2). Temporal gives an activity up of which it has
 * not taken a heartbeat for two seconds, and whoever follows goes on then. So it is worked on only as long as the last
 * heartbeat that the server has answered is younger than that, whoever was frozen or cut off: what was given up has
 * ended before anybody hears of it.
 */
import { Context } from "@temporalio/activity";
import { isGrpcServiceError } from "@temporalio/client";
import { clock, isOver, type Lease } from "../sandbox/lease.ts";

/** Milliseconds; less than the heartbeat timeout of workflows/activities.ts by what it takes to end a tool. */
const LEASE_MS = 1_600;
/**
 * What was ordered longer ago has waited in its queue, or in the socket of a worker that was frozen: then it was given
 * up. It is not begun before the server has answered a heartbeat. By the clocks of two hosts: they may differ by as much
 * as LEASE_MS leaves.
 */
const FRESH_MS = 500;
const BEAT_EVERY_MS = 500;
/** The SDK ends what does not beat by it, too, for seven seconds. */
const BEATS_TO_SDK = 6;
const NOT_FOUND = 5; // of gRPC

export type ActivityLease = Lease & {
  /** Aborted by a cancel of the conversation's, a worker's shutdown, and when it is over; an activity need not know which. */
  readonly signal: AbortSignal;
};

/** Beats while `body` runs. */
export async function withLease<T>(body: (lease: ActivityLease) => Promise<T>): Promise<T> {
  const context = Context.current();
  const { taskToken, currentAttemptScheduledTimestampMs: ordered } = context.info;
  const { workflowService, options } = context.client;
  const age = Math.max(0, Date.now() - ordered);
  const isFresh = age < FRESH_MS;
  const lease = new ServerLease(context.cancellationSignal, isFresh ? LEASE_MS - age : LEASE_MS);
  let beats = 0;
  const beat = async (): Promise<void> => {
    if (++beats % BEATS_TO_SDK === 0) context.heartbeat();
    const sent = clock();
    try {
      const request = { namespace: options.namespace, taskToken };
      const { cancelRequested } = await workflowService.recordActivityTaskHeartbeat(request);
      if (cancelRequested) lease.end();
      else lease.renew(sent);
    } catch (error) {
      const code: number | null = isGrpcServiceError(error) ? error.code : null;
      // Given up already. Anything else may pass, but proves nothing.
      if (code === NOT_FOUND || (!isFresh && beats === 1)) lease.end();
    }
  };
  const beatAgain = (): void => {
    timer = setTimeout(beatAgain, BEAT_EVERY_MS);
    if (!lease.signal.aborted) void beat();
  };
  let timer = setTimeout(beatAgain, BEAT_EVERY_MS);
  try {
    if (!isFresh) await Promise.race([beat(), lease.ended]);
    return await body(lease);
  } finally {
    clearTimeout(timer);
    lease.close();
  }
}

class ServerLease implements ActivityLease {
  readonly signal: AbortSignal;
  readonly #ended = new AbortController();
  readonly #listeners = new Set<() => void>();
  #until: number;
  #timer: NodeJS.Timeout;

  /** @param ms for which it lasts if it is not renewed */
  constructor(cancelled: AbortSignal, ms: number) {
    this.signal = AbortSignal.any([cancelled, this.#ended.signal]);
    this.#until = clock() + ms;
    this.#timer = setTimeout(() => this.end(), ms);
  }

  /** Resolves when it has ended for whatever reason. */
  get ended(): Promise<void> {
    return new Promise((resolve) => {
      this.signal.addEventListener("abort", () => resolve(), { once: true });
      if (this.signal.aborted) resolve();
    });
  }

  get until(): number {
    return this.#until;
  }

  /** @param since when the heartbeat was sent that the server has answered; what is over remains so. */
  renew(since: number): void {
    if (this.#ended.signal.aborted || isOver(this) || since + LEASE_MS <= this.#until) return;
    this.#until = since + LEASE_MS;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), this.#until - clock());
    for (const listener of this.#listeners) listener();
  }

  end(): void {
    this.close();
    this.#until = Math.min(this.#until, clock());
    this.#ended.abort();
  }

  /** There is nothing left to be ended. */
  close(): void {
    clearTimeout(this.#timer);
  }

  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
