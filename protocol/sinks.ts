/** Owns: what workflows tell the worker that runs them. Nothing of it is in a history, and a replay tells nothing. */
export type WorkflowSinks = {
  readonly runs: {
    /** A run has begun. @param at when a worker first had it, in milliseconds since the epoch */
    began(at: number): void;
  };
};
