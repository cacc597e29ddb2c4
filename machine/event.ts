/**
 * Owns: everything that can happen to a conversation. Each event carries a stamp (ids.ts). An outcome also carries the
 * generation id of its operation; the machine ignores it when the state does not wait for that id.
 */
import type {
  CallDefect,
  CancelledBy,
  Decision,
  Inheritance,
  QueueOnCancel,
  Sandbox,
  SubAgentOutcome,
} from "./conversation.ts";
import type {
  Block,
  Charge,
  Delivery,
  ErrorKind,
  FileDiff,
  ImageBlock,
  ProviderBlock,
  TokenUsage,
} from "./message.ts";
import type { Stamp } from "./ids.ts";

export type ConversationEvent =
  | {
      readonly kind: "user_message";
      readonly messageId: string;
      readonly text: string;
      readonly images: readonly ImageBlock[];
      readonly delivery: Delivery;
    }
  | { readonly kind: "withdraw_message"; readonly messageId: string }
  | { readonly kind: "user_cancel"; readonly queue: QueueOnCancel; readonly by: CancelledBy }
  | { readonly kind: "user_release_queue" }
  /** The conversation came to rest, and a message waits that is not held. */
  | { readonly kind: "next_run_due" }
  /** Without `toolCallId` (an operator's signal), the decision is on the pending approval. */
  | {
      readonly kind: "user_decide_upgrade";
      readonly decision: Decision;
      readonly toolCallId: string | null;
      /** Who decides, by name, if that is known. */
      readonly by?: string;
    }
  /** `sandbox`: as the host answered just before. */
  | { readonly kind: "user_request_downgrade"; readonly sandbox: Sandbox }
  | { readonly kind: "user_trigger_continuation" }
  | {
      readonly kind: "llm_response";
      readonly requestId: string;
      readonly content: readonly ProviderBlock[];
      /** The provider's value, as sent: "end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", … */
      readonly stopReason: string;
      readonly usage: TokenUsage;
      /** Without it (from a worker of an earlier version), `usage` is charged, at an unknown price. */
      readonly charge?: Charge;
      /** Tokens of the model's window, as known when it answered; without it, the context's `contextWindow` holds. */
      readonly contextWindow?: number;
      readonly durationMs: number;
      /** Defects by the call's position among the tool_use blocks of `content`. */
      readonly defects: readonly { readonly call: number; readonly defect: CallDefect }[];
      /** The response's tool_use ids that earlier messages of the conversation have used. */
      readonly usedToolCallIds: readonly string[];
    }
  | {
      readonly kind: "llm_failed";
      readonly requestId: string;
      readonly errorKind: ErrorKind;
      readonly message: string;
      readonly retryable: boolean;
      /** The provider's Retry-After in milliseconds. */
      readonly retryAfterMs: number | null;
      /** What the provider had reported before it failed. */
      readonly charge?: Charge;
    }
  /** The request ended without an answer and without an error: aborted, or lost with its worker. */
  | {
      readonly kind: "llm_lost";
      readonly requestId: string;
      /** What the provider had reported before the abort. */
      readonly charge?: Charge;
    }
  | { readonly kind: "retry_due"; readonly requestId: string }
  | {
      readonly kind: "tool_completed";
      readonly operationId: string;
      /** `interrupted`: how far the tool came is unknown. */
      readonly status: "completed" | "failed" | "interrupted";
      readonly output: readonly Block[];
      /** The files that the call changed, if any. */
      readonly diffs?: readonly FileDiff[];
      readonly durationMs: number;
    }
  /** The first and only task of a sub-agent. */
  | { readonly kind: "task_given"; readonly messageId: string; readonly task: string }
  | { readonly kind: "sub_agent_finished"; readonly id: string; readonly outcome: SubAgentOutcome }
  /** The conversation continues another one; comes before its first message. */
  | ({ readonly kind: "continued" } & Inheritance)
  /** Something the person should see and the model should not. */
  | { readonly kind: "noted"; readonly text: string }
  | { readonly kind: "restarted"; readonly policy: "idle" | "resume" };

export type Event = ConversationEvent & { readonly stamp: Stamp };
