/**
 * Owns: the HTTP form of a rejection by the conversation's workflow: its code, its sentence, and the members that tell
 * a client how to go on.
 */
import { continueWithSummary } from "./actions.ts";
import { Problem } from "./problem.ts";
import type { UpdateRejection } from "../protocol/workflow.ts";

/** The kernel that Restricted mode needs on the tool host (REQ-BED-014). */
const REQUIRED_KERNEL = "Linux 5.13 or newer with Landlock enabled; 6.12 or newer for all of it.";

export function rejectionProblem(refusal: UpdateRejection, conversationId: string): Problem {
  const { code, message, state } = refusal;
  switch (code) {
    case "agent_busy":
    case "cancellation_in_progress": {
      // A cancel of the summary would make the conversation read-only for ever.
      const isSummarising = state?.kind === "awaiting_continuation";
      const cancel = `/api/conversations/${conversationId}/cancel`;
      return new Problem(code, message, { state, ...(isSummarising ? {} : { cancel }) });
    }
    case "context_exhausted":
      return new Problem(code, message, {
        state,
        summary: state?.kind === "context_exhausted" ? state.summary : null,
        startAnew: continueWithSummary(conversationId),
      });
    case "approval_mismatch":
      return new Problem(code, message, {
        pendingToolCallId: state?.kind === "awaiting_mode_approval" ? state.toolCall.id : null,
        state,
      });
    case "sandbox_unavailable":
      return new Problem(code, message, { requirements: REQUIRED_KERNEL });
    case "sandbox_unknown":
      return new Problem(code, message);
    case "sub_agent_read_only":
    case "no_pending_approval":
    case "already_delivered":
    case "nothing_to_summarise":
    case "queue_full":
    case "not_found":
      return new Problem(code, message, state === null ? {} : { state });
    case "invalid_request":
      return new Problem(code, message, { errors: [{ path: "", message }] });
  }
}
