/**
 * Owns: the lease under which an activity works (architecture, rule 2). Temporal times an activity out 2 s after its
 * last recorded heartbeat, and a successor may start then. The lease expires earlier. So the effect has ended before a
 * successor starts, even if this worker was frozen or cut off from the server.
 */
import { Context } from "@temporalio/activity";
import { isGrpcServiceError } from "@temporalio/client";
import { FRESH_TASK_MS, HEARTBEAT_INTERVAL_MS, LEASE_MS } from "../protocol/timing.ts";
import { clock, isExpired, type Lease } from "../sandbox/lease.ts";

/** A cancelled body may take this many milliseconds to end. A disk that never answers must not hold up a Stop for ever. */
const ENDING_MS = 10_000;
/** The SDK ends an activity that sends no heartbeat through it for seven seconds. */
const HEARTBEATS_PER_SDK_HEARTBEAT = 6;
const NOT_FOUND = 5; // of gRPC

export type ActivityLease = Lease & {
  /** Aborted by a cancel, by the worker's shutdown and when the lease expires; an activity need not know by which. */
  readonly signal: AbortSignal;
};

/** Sends heartbeats until `body` has returned, also while it ends after a cancel: no successor starts before that. */
export async function withLease<T>(body: (lease: ActivityLease) => Promise<T>): Promise<T> {
  const context = Context.current();
  const { taskToken, currentAttemptScheduledTimestampMs: ordered } = context.info;
  const { workflowService, options } = context.client;
  const age = Math.max(0, Date.now() - ordered);
  const isFresh = age < FRESH_TASK_MS;
  const lease = new ServerLease(context.cancellationSignal, isFresh ? LEASE_MS - age : LEASE_MS);
  let heartbeats = 0;
  /** Sends one heartbeat. Returns whether the server has answered it. */
  const heartbeat = async (): Promise<boolean> => {
    if (++heartbeats % HEARTBEATS_PER_SDK_HEARTBEAT === 0) context.heartbeat();
    const sent = clock();
    try {
      const request = { namespace: options.namespace, taskToken };
      const { cancelRequested } = await workflowService.recordActivityTaskHeartbeat(request);
      if (cancelRequested) lease.cancel();
      lease.renew(sent);
      return true;
    } catch (error) {
      const code: number | null = isGrpcServiceError(error) ? error.code : null;
      // The activity has timed out already. Any other error may pass, but renews nothing.
      if (code === NOT_FOUND) lease.end();
      return false;
    }
  };
  const heartbeatAgain = (): void => {
    if (isExpired(lease)) return;
    timer = setTimeout(heartbeatAgain, HEARTBEAT_INTERVAL_MS);
    void heartbeat();
  };
  let timer = setTimeout(heartbeatAgain, HEARTBEAT_INTERVAL_MS);
  try {
    if (!isFresh && !(await Promise.race([heartbeat(), lease.ended]))) lease.end();
    return await body(lease);
  } finally {
    clearTimeout(timer);
    lease.close();
  }
}

class ServerLease implements ActivityLease {
  readonly signal: AbortSignal;
  readonly cancelled = new AbortController();
  readonly #listeners = new Set<() => void>();
  #expiresAt: number;
  /** The lease is not renewed beyond this time. */
  #latest = Infinity;
  #isClosed = false;
  #timer: NodeJS.Timeout;

  /** @param ms for which it lasts if it is not renewed */
  constructor(cancelled: AbortSignal, ms: number) {
    this.signal = AbortSignal.any([cancelled, this.cancelled.signal]);
    this.#expiresAt = clock() + ms;
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

  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** @param since when the heartbeat was sent that the server has answered. An expired lease is not renewed. */
  renew(since: number): void {
    const next = Math.min(since + LEASE_MS, this.#latest);
    if (this.#isClosed || isExpired(this) || next <= this.#expiresAt) return;
    this.#expiresAt = next;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), next - clock());
    for (const listener of this.#listeners) listener();
  }

  /** Tells the body to end. The lease goes on until it has. */
  cancel(): void {
    if (!this.#isClosed) this.cancelled.abort();
  }

  end(): void {
    if (this.#isClosed) return;
    this.#expiresAt = Math.min(this.#expiresAt, clock());
    this.cancel();
    this.close();
  }

  /** From now on a late answer neither ends nor renews the lease. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  onRenewed(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
