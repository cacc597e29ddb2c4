/**
 * Owns: what workflows may ask of activities, as types only: no implementation reaches the workflow bundle.
 * Every activity that performs an effect first commits the revisions that it is given (docs/architecture.md, rule 1).
 */
import type { Claim, Committed, Packed, RowVersion } from "./commit.ts";
import type { Context } from "../machine/context.ts";
import type { Conversation, Mode, Sandbox, ToolCall } from "../machine/conversation.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { ConversationConfig } from "./conversation.ts";
import type { KnownTitle } from "./title.ts";
import type { CreateInput, RecentMessage } from "./workflow.ts";

/** Revisions that are not confirmed yet, ascending. */
export type CommitInput = Packed & {
  readonly conversationId: string;
  /** Set until the first revision is confirmed. */
  readonly createInput: CreateInput | null;
};

/**
 * Input of an activity with an effect. It carries all revisions that are not confirmed; the last one ordered the
 * effect.
 */
export type EffectInput = CommitInput & {
  /** Starts at 0 and grows by one each time the operation is ordered again because it had not started. */
  readonly dispatchAttempt: number;
  /** Restarts of the whole system, as far as the workflow knows of them. */
  readonly restarts: number;
};

/**
 * The result of an activity with an effect. `superseded`: the row does not wait for this operation (any more), so the
 * effect was not performed. `not_started`: the commit never succeeded, so the effect was not performed either.
 */
export type Performed<E extends ConversationEvent> =
  | { readonly kind: "done"; readonly committed: Committed; readonly event: E }
  | { readonly kind: "superseded"; readonly committed: Committed }
  | { readonly kind: "not_started" };

type EventOf<K extends ConversationEvent["kind"]> = Extract<ConversationEvent, { kind: K }>;
export type RequestEvent = EventOf<"llm_response"> | EventOf<"llm_failed"> | EventOf<"llm_lost">;
export type ToolEvent = EventOf<"tool_completed">;

export type RequestInput = EffectInput & { readonly config: ConversationConfig; readonly requestId: string };
type ContinuationInput = RequestInput & { readonly rejectedTools: readonly string[] };
export type ToolInput = EffectInput & {
  readonly config: ConversationConfig;
  readonly operationId: string;
  readonly call: ToolCall;
  readonly mode: Mode;
};

/** A running tool. Without `operationId`, any tool of the conversation, which will run no other. */
export type ToolToStop = { readonly conversationId: string; readonly operationId: string | null };

type LoadInput = {
  readonly conversationId: string;
  readonly createInput: CreateInput | null;
  /** Message ids to look up in the row; the answer names those that it knows. */
  readonly askedMessageIds: readonly string[];
};
/** The parts of a conversation that do not change while it is loaded. */
export type ConversationMetadata = {
  readonly config: ConversationConfig;
  readonly context: Context;
  /** The context of sub-agents that it spawns with its own model: they need not load theirs. */
  readonly subAgentContext: Context;
  /** Its title, and those of its sub-agents, are not among the search attributes, which nothing encrypts. */
  readonly hidesTitle?: boolean;
};
/** A conversation as its row holds it. */
export type StoredConversation = RowVersion & {
  readonly conversation: Conversation;
  /** Restarts of the whole system. */
  readonly restarts: number;
  readonly archived: boolean;
  /** Absent from histories of before workflows knew titles. */
  readonly title?: KnownTitle;
  /** Identifies the conversation together with its id: after a removal, another conversation may take the id. */
  readonly createdAt: string;
  /** The asked ids that exist as messages or in the queue, in no particular order. */
  readonly knownMessageIds: readonly string[];
  /** The last 64 user messages and the queue, oldest first. */
  readonly recentMessages: readonly RecentMessage[];
};

export type Loaded = ConversationMetadata & {
  /** null: there is no row yet, and `config` is the create input's. */
  readonly stored: StoredConversation | null;
};

export interface ConversationActivities {
  /** null: there is neither a row nor a create input. */
  load(input: LoadInput): Promise<Loaded | null>;
  commit(input: CommitInput): Promise<Committed>;
  requestLlm(input: RequestInput): Promise<Performed<RequestEvent>>;
  requestContinuation(input: ContinuationInput): Promise<Performed<RequestEvent>>;
  /** `other_host`: this worker is not on the host of the conversation's directory; nothing was committed. */
  executeTool(input: ToolInput): Promise<Performed<ToolEvent> | { readonly kind: "other_host" }>;
  /** Aborts these tools, in whichever worker they run. Does not wait until they have ended. */
  stopTools(input: { readonly tools: readonly ToolToStop[] }): Promise<void>;
  /**
   * Takes back the order before this claim's, which was lost. true: no worker had begun it, and none will, so the
   * operation may be ordered again, after this claim.
   */
  takeBack(input: { readonly conversationId: string; readonly claim: Claim }): Promise<boolean>;
  /** Whether the conversation already has this message id: an operator's signal may bring an old one. */
  messageExists(input: { readonly conversationId: string; readonly messageId: string }): Promise<boolean>;
  /** Deletes the rows, children included, of the conversation with this id and `createdAt`; null: any `createdAt`. */
  remove(input: { readonly conversationId: string; readonly createdAt: string | null }): Promise<void>;
}

/** Activities on the task queue of a tool host. */
export interface ToolActivities {
  executeTool(input: ToolInput): Promise<Performed<ToolEvent>>;
}

/** The API calls these as standalone activities on a tool host's task queue. */
export interface HostActivities {
  describeHost(input: {
    readonly host: string;
  }): Promise<{ readonly host: string; readonly sandbox: Sandbox }>;
  checkDirectory(input: {
    readonly cwd: string;
  }): Promise<{ readonly ok: true; readonly cwd: string } | { readonly ok: false; readonly reason: string }>;
  listDirectories(input: { readonly path: string }): Promise<{ readonly directories: readonly string[] }>;
}
