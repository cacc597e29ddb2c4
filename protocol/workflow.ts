/**
 * Owns: the names and shapes of the updates, signals and queries of a conversation's workflow. An update returns an
 * answer. The signals of the same names and inputs are for the Temporal CLI and Web UI; a signal that is not taken
 * leaves a note in the conversation.
 * A rejected update fails with an ApplicationFailure whose `type` is a code of the HTTP contract and whose first detail
 * is an `UpdateRejection`.
 */
import { defineQuery, defineSignal, defineUpdate } from "@temporalio/workflow";
import type { ConversationMetadata } from "./activities.ts";
import type { RowVersion } from "./commit.ts";
import type { Context } from "../machine/context.ts";
import type {
  CancelledBy,
  Conversation,
  Decision,
  Inheritance,
  Mode,
  QueuedMessage,
  QueueHold,
  QueueOnCancel,
  State,
} from "../machine/conversation.ts";
import type { Operation } from "../machine/effect.ts";
import type { Delivery, ImageBlock } from "../machine/message.ts";
import type { ConversationConfig } from "./conversation.ts";
import type { RejectionCode } from "../machine/rejection.ts";
import type { KnownTitle } from "./title.ts";

export const CONVERSATION_WORKFLOW = "conversation";
/** The task queue of workflows, commits and LLM requests, unless configured otherwise. */
export const CONVERSATIONS_QUEUE = "conversations";
/** The task queue of the host where a conversation's directory is: its tools run there. */
export const toolsQueue = (host: string): string => `tools:${host}`;

/** The input from which the first commit creates a conversation. */
export type CreateInput = {
  readonly config: ConversationConfig;
  readonly title: string | null;
  /** What it takes over from the conversation that it continues, or null. */
  readonly inherited: Inheritance | null;
  /** A sub-agent's task, or null. */
  readonly task: { readonly messageId: string; readonly text: string } | null;
  /** Set if it is known; otherwise the workflow loads it and looks for the row at the same time. */
  readonly context?: Context;
  /** What the parent knows of it; see ConversationMetadata. */
  readonly hidesTitle?: boolean;
};

/** The state that one run hands to the next when it continues as new. */
export type ContinueAsNewState = ConversationMetadata & {
  readonly conversation: Conversation;
  /** The number of the last revision, which is confirmed like all before it. */
  readonly revision: number;
  readonly revisionId: string;
  readonly restarts: number;
  readonly archived: boolean;
  /** Absent from histories of before workflows knew titles. */
  readonly title?: KnownTitle;
  /** From the row. */
  readonly createdAt: string | null;
  /** Operations that are ordered and committed, but not performed yet. */
  readonly operations: readonly Operation[];
  /** The messages accepted last; update ids do not outlive a run (temporal#6375). */
  readonly recentMessages: readonly RecentMessage[];
};

export type RecentMessage = {
  readonly messageId: string;
  /** null until delivered. */
  readonly sequence: number | null;
  readonly delivery: Delivery;
};

/**
 * The workflow's argument. The row is authoritative: without `carried` the workflow loads it first, and uses
 * `createInput` only when there is no row yet.
 */
export type ConversationStart = {
  readonly conversationId: string;
  readonly createInput?: CreateInput;
  readonly carried?: ContinueAsNewState;
};

export type UpdateRejection = {
  readonly code: RejectionCode | "not_found" | "invalid_request";
  readonly message: string;
  readonly state: State | null;
};

export type SendMessageInput = {
  readonly messageId: string;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly delivery: Delivery;
};
/**
 * The version of the row that the caller has read, if it has. A workflow that does not know this version was rolled
 * back: it loads the row before it judges the request.
 */
export type Asked = { readonly row?: RowVersion };

/** `revision` contains what the answer says. Wait until the row has it before you report the answer to a client. */
export type Accepted = { readonly revision: number };
export type SendMessageResult = Accepted & RecentMessage;
export type StateResult = Accepted & { readonly state: State };
export type ModeResult = Accepted & { readonly mode: Mode; readonly state: State };

/** Creates the conversation (with update-with-start). If it exists already, the API answers `already_exists`. */
export const openUpdate = defineUpdate<Accepted & { created: boolean }>("open");
export const sendMessageUpdate = defineUpdate<SendMessageResult, [SendMessageInput & Asked]>("sendMessage");
export const withdrawMessageUpdate = defineUpdate<Accepted, [{ messageId: string } & Asked]>(
  "withdrawMessage",
);
/** `next`: the waiting message whose run follows, or has just started. */
export type CancelResult = StateResult & {
  readonly next: QueuedMessage | null;
  readonly queueHeld: QueueHold | null;
};
/** The API sends it without reading the row first, so that a Stop does not need Postgres. */
export const cancelUpdate = defineUpdate<CancelResult, [{ queue: QueueOnCancel }]>("cancel");
/** Lets a held queue go on. */
export const releaseQueueUpdate = defineUpdate<StateResult, [{ releaseQueue: true } & Asked]>("releaseQueue");
export const decideUpgradeUpdate = defineUpdate<
  ModeResult,
  /** `by`: who decides, by name. */
  [{ decision: Decision; toolCallId: string; by?: string } & Asked]
>("decideUpgrade");
export const downgradeUpdate = defineUpdate<ModeResult, [Asked]>("downgrade");
export const triggerContinuationUpdate = defineUpdate<StateResult, [{ triggerContinuation: true } & Asked]>(
  "triggerContinuation",
);
/** Archiving stops the work first. */
export const archiveUpdate = defineUpdate<Accepted, [{ archived: boolean } & Asked]>("archive");
/** Completes when the work was stopped and the rows, children included, are gone. */
export const removeUpdate = defineUpdate<null, [{ remove: true }]>("remove");

/**
 * Operators may type the inputs of signals by hand: inputs.ts checks them. Each signal has an input, because only an
 * input can be signed.
 */
export const sendMessageSignal = defineSignal<[Partial<SendMessageInput> & { text: string }]>("sendMessage");
export const withdrawMessageSignal = defineSignal<[{ messageId: string }]>("withdrawMessage");
/** A parent's signal to its sub-agent says by `by` why it cancels. */
export const cancelSignal = defineSignal<[{ queue?: QueueOnCancel; by?: CancelledBy }]>("cancel");
export const releaseQueueSignal = defineSignal<[{ releaseQueue: true }]>("releaseQueue");
export const decideUpgradeSignal =
  defineSignal<[{ decision: Decision; toolCallId?: string; by?: string }]>("decideUpgrade");
export const downgradeSignal = defineSignal<[Readonly<Record<string, never>>]>("downgrade");
export const triggerContinuationSignal = defineSignal<[{ triggerContinuation: true }]>("triggerContinuation");
export const archiveSignal = defineSignal<[{ archived?: boolean }]>("archive");
export const removeSignal = defineSignal<[{ remove: true }]>("remove");
/**
 * `npm start` sends it before a worker polls (docs/machine.md, Restart), with the version of the row; null: there is no
 * row.
 */
export const restartedSignal =
  defineSignal<[{ policy: "idle" | "resume"; row: RowVersion | null; restarts: number }]>("restarted");
/**
 * The API sends it after a rename, which Postgres has already, so that operators see the new title. `event` is the
 * number of the event that tells of it: signals may arrive in another order.
 */
export const renamedSignal = defineSignal<[{ title: string; event: number }]>("renamed");

/**
 * For operators, after another version of the workers has become current (docs/operations.md). It orders nothing, so it
 * need not be signed: the workflow task that it causes is what moves a conversation that is at rest.
 */
export const moveToCurrentVersionSignal = defineSignal("moveToCurrentVersion");

/** For operators: the workflow's own view, uncommitted revisions included. */
export const stateQuery = defineQuery<{
  conversation: Conversation;
  revision: number;
  /** Null before the first revision. */
  revisionId: string | null;
  /** Revisions that are not known to be in Postgres. */
  unconfirmed: number;
}>("state");
