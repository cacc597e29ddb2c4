/**
 * Owns: the one value that a conversation is. Plain data, serialisable, never mutated.
 * Not here: how it changes (transition.ts), what is stored beside it (message.ts).
 */
import type { Delivery, ErrorKind, ImageBlock, Json, SeedSource, TokenUsage, ToolStatus } from "./message.ts";

/** What a host can enforce of Restricted mode (REQ-BED-014). The reasons are sentences. */
export type Sandbox =
  | { readonly kind: "available"; readonly abi: number }
  /** A completed probe shows that the kernel does not enforce it. */
  | { readonly kind: "unavailable"; readonly reason: string }
  /** The probe could not be completed. Nothing may be concluded from that. */
  | { readonly kind: "unknown"; readonly reason: string };

/** REQ-BED-014. */
export type Mode = "restricted" | "unrestricted";

/** Why a call cannot run, whatever tool it names. */
export type CallDefect = "malformed_json" | "truncated" | "too_long";

export type ToolCall = {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  readonly defect?: CallDefect;
};

/** A call of the present round whose result is stored. */
export type CompletedCall = { readonly toolCallId: string; readonly status: ToolStatus };

/** A failed request that will be asked again: when (RFC 3339) and why. */
export type Retry = { readonly at: string; readonly errorKind: ErrorKind; readonly message: string };

/** The calls of a response after the current one, and the calls that are completed. */
export type Round = { readonly remaining: readonly ToolCall[]; readonly completed: readonly CompletedCall[] };

/** A task as the model gives it. */
export type GivenTask = {
  readonly task: string;
  readonly model?: string;
  /** From the start of the sub-agent. */
  readonly timeoutSeconds?: number;
};

export type SubAgentTask = GivenTask & { readonly id: string; readonly timeoutSeconds: number };

/** How a sub-agent ended. */
export type SubAgentOutcome =
  | { readonly success: boolean; readonly result: string }
  | { readonly error: string; readonly errorKind: ErrorKind; readonly partialResult?: string };

/** Children of one `spawn_agents` call. The first MAX_PARALLEL_SUB_AGENTS of `pending` are running. */
export type Children = {
  readonly pending: readonly SubAgentTask[];
  readonly finished: readonly { readonly id: string; readonly outcome: SubAgentOutcome }[];
  /** In the order of the call's tasks. */
  readonly all: readonly SubAgentTask[];
};

/** Who asked for a cancel; a sub-agent's failure names it. */
export type CancelledBy = "user" | "parent" | "timeout";

export type Cancelling = {
  readonly kind: "cancelling";
  /** RFC 3339. */
  readonly since: string;
  readonly by: CancelledBy;
} & (
  | { readonly stopping: "request"; readonly requestId: string }
  | ({ readonly stopping: "tool"; readonly operationId: string; readonly current: ToolCall } & Round)
  | ({ readonly stopping: "sub_agents"; readonly toolCall: ToolCall } & Children & Round)
);

/** Every state of the design document; `awaiting_llm` is an internal step and never stored. */
export type State =
  | { readonly kind: "idle" }
  | { readonly kind: "awaiting_llm" }
  | {
      readonly kind: "llm_requesting";
      readonly attempt: number;
      /** How often in a row this attempt was lost with its worker. */
      readonly lost: number;
      readonly requestId: string;
      readonly retry: Retry | null;
    }
  | ({
      readonly kind: "tool_executing";
      readonly current: ToolCall;
      /** The generation id of this execution. */
      readonly operationId: string;
      readonly startedAt: string;
    } & Round)
  | ({
      readonly kind: "awaiting_mode_approval";
      readonly reason: string;
      readonly toolCall: ToolCall;
    } & Round)
  | ({ readonly kind: "awaiting_sub_agents"; readonly toolCall: ToolCall } & Children & Round)
  | Cancelling
  | { readonly kind: "error"; readonly message: string; readonly errorKind: ErrorKind }
  | {
      readonly kind: "awaiting_continuation";
      readonly rejectedToolCalls: readonly ToolCall[];
      readonly triggerUsage: TokenUsage;
      readonly attempt: number;
      readonly lost: number;
      readonly requestId: string;
      readonly retry: Retry | null;
    }
  | {
      readonly kind: "context_exhausted";
      readonly summary: string;
      readonly source: SummarySource;
      readonly finalUsage: TokenUsage;
    }
  | { readonly kind: "completed"; readonly result: string; readonly success: boolean }
  | {
      readonly kind: "failed";
      readonly error: string;
      readonly errorKind: ErrorKind;
      readonly partialResult?: string;
    };

export type StateOf<K extends State["kind"]> = Extract<State, { kind: K }>;

/** The id of the request or call whose text comes in as it is made, in this state; null: there is none. */
export function runningIn(state: State): string | null {
  switch (state.kind) {
    case "llm_requesting":
    case "awaiting_continuation":
      return state.retry === null ? state.requestId : null;
    case "tool_executing":
      return state.current.id;
    case "cancelling":
      return state.stopping === "tool" ? state.current.id : null;
    case "idle":
    case "awaiting_llm":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return null;
  }
}

/** A message that was accepted and waits: a steer for the next request, a follow-up for the end of the run. */
export type QueuedMessage = {
  readonly messageId: string;
  readonly delivery: Exclude<Delivery, "direct">;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly createdAt: string;
};

/**
 * Why no message in the queue starts a run. A person's release ends every hold but the last one. A completed run ends
 * those for `restart`, `errors`, `auth` and `spending_limit`, too.
 */
export const QUEUE_HOLDS = [
  /** A person stopped the work, and said that the queue shall wait. */
  "cancel",
  /** The messages came along from the conversation that this one continues. */
  "continued",
  /** The system was restarted. */
  "restart",
  /** Two runs in a row ended in an error. */
  "errors",
  /** The provider did not accept the key. */
  "auth",
  /** A limit on spending was reached. */
  "spending_limit",
  /** This conversation takes no more messages; they go along into the one that continues it. */
  "context_exhausted",
] as const;
export type QueueHold = (typeof QUEUE_HOLDS)[number];

/** What a cancel does with the messages that wait: they go on, they wait for a release, or they are dropped. */
export type QueueOnCancel = "run" | "hold" | "clear";

/** How the summary of an ended conversation came about. Only one that the model wrote is worth going on from. */
export type SummarySource = "model" | "failed" | "cancelled";

/** What a conversation begins with when it continues another one. */
export type Inheritance = {
  /** The text that its model reads first: the summary, or an excerpt that was made without a model. */
  readonly seed: { readonly source: SeedSource; readonly text: string } | null;
  /** The messages that waited there. */
  readonly queue: readonly QueuedMessage[];
};

/** Sums over the conversation, and the size of the context at the last response. */
export type Usage = TokenUsage & {
  /** input + output + cache-read + cache-creation tokens of the last response. */
  readonly contextUsed: number;
  /** Tokens of the model's window when this was counted (REQ-BED-022); at least 1. */
  readonly contextWindow: number;
};

/** The run in progress: from its root message to its run_stop. */
export type Run = {
  readonly cycleId: string;
  /** LLM requests ordered so far; the runaway cap counts these. */
  readonly requests: number;
  /** How often in a row max_tokens cut a text off and the model was asked to continue it. */
  readonly truncations: number;
  /** Times that a sub-agent was reminded to submit its result. */
  readonly reminders: number;
  /** The person denied an upgrade in the current round: a second request is denied without asking the person. */
  readonly upgradeDenied: boolean;
};

export type Conversation = {
  readonly state: State;
  readonly mode: Mode;
  readonly queue: readonly QueuedMessage[];
  /** null: the queue goes on by itself. An empty queue is never held. */
  readonly queueHeld: QueueHold | null;
  readonly usage: Usage;
  /** Token counts of the last response; a continuation keeps them as its `triggerUsage`. */
  readonly lastUsage: TokenUsage;
  /** The notice `context.warned` was sent. */
  readonly warned: boolean;
  /** The sequence of the last message. */
  readonly sequence: number;
  /** There is something that a continuation could summarise. */
  readonly hasMessages: boolean;
  readonly run: Run | null;
  readonly errorsInARow: number;
  /** The last decision on an approval: repeating this decision gets the same answer. */
  readonly lastDecision: { readonly toolCallId: string; readonly decision: Decision } | null;
};

export type Decision = "approve" | "deny";

export const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheCreationTokens: 0,
};

/** A conversation before its first message; `contextWindow` in tokens. */
export function newConversation(mode: Mode, contextWindow: number): Conversation {
  return {
    state: { kind: "idle" },
    mode,
    queue: [],
    queueHeld: null,
    usage: { ...NO_TOKENS, contextUsed: 0, contextWindow },
    lastUsage: NO_TOKENS,
    warned: false,
    sequence: 0,
    hasMessages: false,
    run: null,
    errorsInARow: 0,
    lastDecision: null,
  };
}

/** The generation id of the operation that this state waits for: a request or a tool in flight, else null. */
export function awaitedOperation(state: State): string | null {
  switch (state.kind) {
    case "llm_requesting":
    case "awaiting_continuation":
      return state.retry === null ? state.requestId : null;
    case "tool_executing":
      return state.operationId;
    case "idle":
    case "awaiting_llm":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
    case "cancelling":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return null;
  }
}

/** A run is in progress: only its own outcomes, a cancel, a decision or a restart end this state. */
export function isWorking(state: State): boolean {
  switch (state.kind) {
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
    case "cancelling":
    case "awaiting_continuation":
      return true;
    case "idle":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return false;
  }
}
