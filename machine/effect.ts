/**
 * Owns: the effects of a transition: notices to clients, operations that start after the commit, and stops that take
 * effect at once.
 */
import type {
  Mode,
  QueuedMessage,
  QueueHold,
  State,
  SubAgentOutcome,
  SubAgentTask,
  SummarySource,
  ToolCall,
  Usage,
} from "./conversation.ts";
import type { ErrorKind } from "./message.ts";

/** A fact for clients, durable and numbered. `message.added` is not among them: it follows from each message. */
export type Notice =
  | {
      readonly name: "state.changed";
      readonly data: { readonly state: State; readonly cycleId: string | null };
    }
  | {
      readonly name: "mode.changed";
      /** `person`: who approved, by name, if that is known. */
      readonly data: { readonly mode: Mode; readonly by: "approval" | "user"; readonly person?: string };
    }
  | {
      readonly name: "queue.changed";
      readonly data: { readonly queue: readonly QueuedMessage[]; readonly queueHeld: QueueHold | null };
    }
  | {
      readonly name: "usage.changed";
      readonly data: {
        readonly usage: Usage & {
          readonly contextWindow: number;
          readonly contextRatio: number;
          readonly warning: boolean;
        };
      };
    }
  | { readonly name: "context.warned"; readonly data: { readonly contextRatio: number } }
  | {
      readonly name: "context.exhausted";
      readonly data: { readonly summary: string; readonly source: SummarySource };
    }
  | {
      readonly name: "llm.retry_scheduled";
      readonly data: {
        readonly attempt: number;
        readonly delayMs: number;
        readonly at: string;
        readonly errorKind: ErrorKind;
        readonly message: string;
      };
    }
  | { readonly name: "subagent.spawned"; readonly data: { readonly id: string; readonly task: string } }
  | {
      readonly name: "subagent.finished";
      readonly data: { readonly id: string; readonly outcome: SubAgentOutcome };
    };

/** Performed by an activity or a timer, and answered with an event that carries the same generation id. */
export type Operation =
  | { readonly kind: "request_llm"; readonly requestId: string; readonly attempt: number }
  | {
      readonly kind: "request_continuation";
      readonly requestId: string;
      readonly attempt: number;
      readonly rejectedToolCalls: readonly ToolCall[];
    }
  | { readonly kind: "schedule_retry"; readonly requestId: string; readonly delayMs: number }
  | {
      readonly kind: "execute_tool";
      readonly operationId: string;
      readonly call: ToolCall;
      readonly mode: Mode;
    }
  /** `mode`: of the parent. */
  | { readonly kind: "spawn_sub_agent"; readonly subAgent: SubAgentTask; readonly mode: Mode };

/** A stop takes effect at once, not after the commit: a cancel never waits (docs/architecture.md, rule 7). */
export type Stop =
  /** A request, or the timer of its retry. */
  | { readonly kind: "abort_request"; readonly requestId: string }
  | { readonly kind: "abort_tool"; readonly operationId: string }
  | { readonly kind: "cancel_sub_agent"; readonly id: string };
