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
/** What began long ago for the server, with a worker that was frozen, is told so soon. */
const FIRST_BEAT_MS = 100;
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
  const { taskToken } = context.info;
  const { workflowService, options } = context.client;
  const lease = new ServerLease(context.cancellationSignal);
  let beats = 0;
  const beat = (): void => {
    timer = setTimeout(beat, BEAT_EVERY_MS);
    if (lease.signal.aborted) return;
    const sent = clock();
    workflowService.recordActivityTaskHeartbeat({ namespace: options.namespace, taskToken }).then(
      ({ cancelRequested }) => (cancelRequested ? lease.end() : lease.renew(sent)),
      (error: unknown) => {
        const code: number | null = isGrpcServiceError(error) ? error.code : null;
        // Given up already. Anything else may pass.
        if (code === NOT_FOUND) lease.end();
      },
    );
    if (++beats % BEATS_TO_SDK === 0) context.heartbeat();
  };
  let timer = setTimeout(beat, FIRST_BEAT_MS);
  try {
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
  #until = clock() + LEASE_MS;
  #timer: NodeJS.Timeout;

  constructor(cancelled: AbortSignal) {
    this.signal = AbortSignal.any([cancelled, this.#ended.signal]);
    this.#timer = setTimeout(() => this.end(), LEASE_MS);
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
