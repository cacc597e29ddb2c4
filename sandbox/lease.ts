/**
 * Owns: the lease: how long an effect may go on that somebody else may give up meanwhile. It expires at a time, and not
 * by a call, because a frozen process makes no calls.
 */
export type Lease = {
  /** Milliseconds of `clock`. Later the effect must neither begin nor go on. */
  readonly expiresAt: number;
  /** Calls the listener at each renewal; returns a function that unsubscribes it. */
  readonly onRenewed: (listener: () => void) => () => void;
};

/**
 * Milliseconds of CLOCK_MONOTONIC, which is the same for all processes of a host, and runs also while one of them is
 * stopped.
 */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6;

export const isExpired = (lease: Pick<Lease, "expiresAt"> | undefined): boolean =>
  lease !== undefined && clock() > lease.expiresAt;
