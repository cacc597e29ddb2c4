/**
 * Owns: what a transition may look at besides the conversation and the event. Fixed for a workflow run.
 */

export type Limits = {
  /** LLM requests of one run before it is stopped as a runaway. */
  readonly requestsPerRun: number;
  /** Steers and follow-ups that may wait at once. */
  readonly queued: number;
  /** Attempts of one LLM request in all (REQ-BED-006). */
  readonly attempts: number;
  /** How often in a row a request may be lost with its worker. */
  readonly losses: number;
  /** Milliseconds. A request with a longer Retry-After fails at once instead of waiting. */
  readonly longestRetryMs: number;
  /** Requests that continue a text cut off by max_tokens. */
  readonly truncations: number;
  /** Reminders to a sub-agent that ends its turn without submitting. */
  readonly reminders: number;
  /** Seconds after which a sub-agent is stopped whose task sets no limit. */
  readonly subAgentTimeoutSeconds: number;
};

export type Context = {
  readonly isSubAgent: boolean;
  /** Tokens; the smallest known window for an unknown model (REQ-BED-022). */
  readonly contextWindow: number;
  /** Names of the tools that this conversation has, control tools included. */
  readonly tools: readonly string[];
  readonly limits: Limits;
};

export const DEFAULT_LIMITS: Limits = {
  requestsPerRun: 200,
  queued: 32,
  attempts: 3,
  losses: 10,
  longestRetryMs: 60_000,
  truncations: 3,
  reminders: 2,
  subAgentTimeoutSeconds: 3_600,
};
