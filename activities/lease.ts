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
/** For a body to end that was called off. Then it is given up: a disk that never answers must not hold up a Stop for ever. */
const ENDING_MS = 10_000;
/** The SDK ends what does not beat by it, too, for seven seconds. */
const BEATS_TO_SDK = 6;
const NOT_FOUND = 5; // of gRPC

export type ActivityLease = Lease & {
  /** Aborted by a cancel of the conversation's, a worker's shutdown, and when it is over; an activity need not know which. */
  readonly signal: AbortSignal;
};

/** Beats until `body` has returned, also while it ends after a cancel: nobody goes on before it has. */
export async function withLease<T>(body: (lease: ActivityLease) => Promise<T>): Promise<T> {
  const context = Context.current();
  const { taskToken, currentAttemptScheduledTimestampMs: ordered } = context.info;
  const { workflowService, options } = context.client;
  const age = Math.max(0, Date.now() - ordered);
  const isFresh = age < FRESH_MS;
  const lease = new ServerLease(context.cancellationSignal, isFresh ? LEASE_MS - age : LEASE_MS);
  let beats = 0;
  /** Whether the server has answered it. */
  const beat = async (): Promise<boolean> => {
    if (++beats % BEATS_TO_SDK === 0) context.heartbeat();
    const sent = clock();
    try {
      const request = { namespace: options.namespace, taskToken };
      const { cancelRequested } = await workflowService.recordActivityTaskHeartbeat(request);
      if (cancelRequested) lease.callOff();
      lease.renew(sent);
      return true;
    } catch (error) {
      const code: number | null = isGrpcServiceError(error) ? error.code : null;
      // Given up already. Anything else may pass, but proves nothing.
      if (code === NOT_FOUND) lease.end();
      return false;
    }
  };
  const beatAgain = (): void => {
    if (isOver(lease)) return;
    timer = setTimeout(beatAgain, BEAT_EVERY_MS);
    void beat();
  };
  let timer = setTimeout(beatAgain, BEAT_EVERY_MS);
  try {
    if (!isFresh && !(await Promise.race([beat(), lease.ended]))) lease.end();
    return await body(lease);
  } finally {
    clearTimeout(timer);
    lease.close();
  }
}

class ServerLease implements ActivityLease {
  readonly signal: AbortSignal;
  readonly #calledOff = new AbortController();
  readonly #listeners = new Set<() => void>();
  #until: number;
  /** It is not prolonged beyond that. */
  #latest = Infinity;
  #isClosed = false;
  #timer: NodeJS.Timeout;

  /** @param ms for which it lasts if it is not renewed */
  constructor(cancelled: AbortSignal, ms: number) {
    this.signal = AbortSignal.any([cancelled, this.#calledOff.signal]);
    this.#until = clock() + ms;
    this.#timer = setTimeout(() => this.end(), ms);
    const limit = (): void => void (this.#latest = clock() + ENDING_MS);
    this.signal.addEventListener("abort", limit, { once: true });
    if (this.signal.aborted) limit();
  }

  /** Resolves, with false, when its signal is aborted for whatever reason. */
  get ended(): Promise<false> {
    return new Promise((resolve) => {
      this.signal.addEventListener("abort", () => resolve(false), { once: true });
      if (this.signal.aborted) resolve(false);
    });
  }

  get until(): number {
    return this.#until;
  }

  /** @param since when the heartbeat was sent that the server has answered; what is over remains so. */
  renew(since: number): void {
    const next = Math.min(since + LEASE_MS, this.#latest);
    if (this.#isClosed || isOver(this) || next <= this.#until) return;
    this.#until = next;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), next - clock());
    for (const listener of this.#listeners) listener();
  }

  /** The body is to end. Until it has, the lease goes on. */
  callOff(): void {
    if (!this.#isClosed) this.#calledOff.abort();
  }

  end(): void {
    if (this.#isClosed) return;
    this.#until = Math.min(this.#until, clock());
    this.callOff();
    this.close();
  }

  /** There is nothing left to be ended or prolonged, whatever is answered late. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
