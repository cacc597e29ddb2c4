/** Owns: why an event is rejected. A rejected event changes nothing. The codes are those of the HTTP contract. */

export type RejectionCode =
  | "agent_busy"
  | "cancellation_in_progress"
  | "context_exhausted"
  | "sub_agent_read_only"
  | "no_pending_approval"
  | "approval_mismatch"
  | "sandbox_unavailable"
  | "sandbox_unknown"
  | "already_delivered"
  | "nothing_to_summarise"
  | "queue_full";

/** `message` is a sentence for the person that says what to do next. */
export type Rejection = { readonly code: RejectionCode; readonly message: string };
