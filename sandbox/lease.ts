/**
 * Owns: for how long something may go on that somebody may give up meanwhile. Its end is a time, and not a call,
 * because a process that is frozen makes no calls.
 */
export type Lease = {
  /** Milliseconds of `clock`; later it must neither begin nor go on. */
  readonly expiresAt: number;
  /** Calls back when it is prolonged; returns what ends that. */
  readonly onRenewed: (listener: () => void) => () => void;
};

/** Milliseconds that all processes of a host count alike (CLOCK_MONOTONIC), also while one of them is stopped. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6;

export const isExpired = (lease: Pick<Lease, "expiresAt"> | undefined): boolean =>
  lease !== undefined && clock() > lease.expiresAt;
