/**
 * Owns: what workflows may ask of activities, as types only: no implementation reaches the workflow bundle.
 * Every activity that performs an effect first commits the revisions that it is given (docs/architecture.md, rule 1).
 */
import type { Committed, Packed, RowVersion } from "./commit.ts";
import type { Context } from "../machine/context.ts";
import type { Conversation, Mode, ToolCall } from "../machine/conversation.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { ConversationConfig, Sandbox } from "./conversation.ts";
import type { CreateInput, RecentMessage } from "./workflow.ts";

/** Revisions that are not confirmed yet, ascending. */
export type CommitInput = Packed & {
  readonly conversationId: string;
  /** Set until the first revision is confirmed. */
  readonly createInput: CreateInput | null;
};

/** Of an activity with an effect: all that are not confirmed; the last one ordered the effect. */
export type EffectInput = CommitInput & {
  /** 0, and one more each time that the operation is ordered again because it had not started. */
  readonly dispatchAttempt: number;
  /** Of the whole system, as far as they are known here. */
  readonly restarts: number;
};

/**
 * What came of an activity with an effect. `superseded`: the row does not wait for this operation (any more),
 * and the effect was not performed. `not_started`: the commit never succeeded, and neither was it.
 */
export type Performed<E extends ConversationEvent> =
  | { readonly kind: "done"; readonly committed: Committed; readonly event: E }
  | { readonly kind: "superseded"; readonly committed: Committed }
  | { readonly kind: "not_started" };

type EventOf<K extends ConversationEvent["kind"]> = Extract<ConversationEvent, { kind: K }>;
export type RequestEvent = EventOf<"llm_response"> | EventOf<"llm_failed"> | EventOf<"llm_lost">;
export type ToolEvent = EventOf<"tool_completed">;

export type RequestInput = EffectInput & { readonly config: ConversationConfig; readonly requestId: string };
export type ContinuationInput = RequestInput & { readonly rejectedTools: readonly string[] };
export type ToolInput = EffectInput & {
  readonly config: ConversationConfig;
  readonly operationId: string;
  readonly call: ToolCall;
  readonly mode: Mode;
};

export type LoadInput = {
  readonly conversationId: string;
  readonly createInput: CreateInput | null;
  /** Message ids of which the answer says whether the row knows them. */
  readonly askedMessageIds: readonly string[];
};
/** What of a conversation does not change while it is loaded. */
export type ConversationMetadata = {
  readonly config: ConversationConfig;
  readonly context: Context;
  /** Of the sub-agents that it spawns with its own model: they need not ask. */
  readonly subAgentContext: Context;
};
/** What a row holds of a conversation. */
export type StoredConversation = RowVersion & {
  readonly conversation: Conversation;
  /** Of the whole system. */
  readonly restarts: number;
  readonly archived: boolean;
  /** With its id it names it: an id may be taken again after a removal. */
  readonly createdAt: string;
  /** Those of the asked ids that exist as messages or in the queue, in no particular order. */
  readonly knownMessageIds: readonly string[];
  /** The last 64 user messages and the queue, oldest first. */
  readonly recentMessages: readonly RecentMessage[];
};

export type Loaded = ConversationMetadata & {
  /** null: there is no row yet, and `config` is the create input's. */
  readonly stored: StoredConversation | null;
};

export interface ConversationActivities {
  /** null: neither a row nor a create input. */
  load(input: LoadInput): Promise<Loaded | null>;
  commit(input: CommitInput): Promise<Committed>;
  requestLlm(input: RequestInput): Promise<Performed<RequestEvent>>;
  requestContinuation(input: ContinuationInput): Promise<Performed<RequestEvent>>;
  /** `other_host`: this worker is not on the host of the conversation's directory; nothing was committed. */
  executeTool(input: ToolInput): Promise<Performed<ToolEvent> | { readonly kind: "other_host" }>;
  /** Stops the tools of these conversations that run in this process, if there are any; does not wait for their ends. */
  stopTools(input: { readonly conversationIds: readonly string[] }): Promise<void>;
  /** A message id that an operator's signal brings may be old: is it in the conversation already? */
  messageExists(input: { readonly conversationId: string; readonly messageId: string }): Promise<boolean>;
  /** Deletes the rows, children included, of the conversation that was created then; null: whenever that was. */
  remove(input: { readonly conversationId: string; readonly createdAt: string | null }): Promise<void>;
}

/** On the queue of a tool host. */
export interface ToolActivities {
  executeTool(input: ToolInput): Promise<Performed<ToolEvent>>;
}

/** Called by the API as standalone activities on a tool host's queue. */
export interface HostActivities {
  describeHost(input: {
    readonly host: string;
  }): Promise<{ readonly host: string; readonly sandbox: Sandbox }>;
  checkDirectory(input: {
    readonly cwd: string;
  }): Promise<{ readonly ok: true; readonly cwd: string } | { readonly ok: false; readonly reason: string }>;
  listDirectories(input: { readonly path: string }): Promise<{ readonly directories: readonly string[] }>;
}
