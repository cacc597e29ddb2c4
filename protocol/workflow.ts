/**
 * Owns: the names and shapes by which the outside talks to a conversation's workflow. Updates answer; the
 * signals of the same names and inputs are for the Temporal CLI and Web UI, and what they ask in vain leaves a
 * note in the conversation.
 * A rejected update fails with an ApplicationFailure whose `type` is a code of the HTTP contract and whose first
 * detail is an `UpdateRejection`.
 */
import { defineQuery, defineSignal, defineUpdate } from "@temporalio/workflow";
import type { ConversationMetadata } from "./activities.ts";
import type { RowVersion } from "./commit.ts";
import type { Context } from "../machine/context.ts";
import type { CancelledBy, Conversation, Decision, Mode, State } from "../machine/conversation.ts";
import type { Operation } from "../machine/effect.ts";
import type { Delivery, ImageBlock } from "../machine/message.ts";
import type { ConversationConfig } from "./conversation.ts";
import type { RejectionCode } from "../machine/rejection.ts";

export const CONVERSATION_WORKFLOW = "conversation";
/** Where workflows, commits and LLM requests are polled for, unless configured otherwise. */
export const CONVERSATIONS_QUEUE = "conversations";
/** Tools run where the conversation's directory lives. */
export const toolsQueue = (host: string): string => `tools:${host}`;

/** How a conversation comes into being: its first commit. */
export type CreateInput = {
  readonly config: ConversationConfig;
  readonly mode: Mode;
  readonly title: string | null;
  /** The summary of an earlier conversation, or null. */
  readonly seed: string | null;
  /** A sub-agent's task, or null. */
  readonly task: { readonly messageId: string; readonly text: string } | null;
  /** If it is known; else it is asked for, with a look for the row. */
  readonly context?: Context;
};

/** What one run hands to the next when it continues as new. */
export type ContinueAsNewState = ConversationMetadata & {
  readonly conversation: Conversation;
  /** Of the last revision, which is confirmed like all before it. */
  readonly revision: number;
  readonly revisionId: string;
  readonly restarts: number;
  readonly archived: boolean;
  /** By the row. */
  readonly createdAt: string | null;
  /** Ordered and committed, not yet performed. */
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
 * The workflow's argument. The row is the truth: without `carried` it is loaded first, and `createInput` is used
 * only when there is no row yet.
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
 * What the caller has read of the row, if it has. A workflow that does not know this version was rolled back: it loads
 * the row before it judges what it is asked.
 */
export type Asked = { readonly row?: RowVersion };

/** `revision` holds what was answered. Wait until the row has it before you tell anybody. */
export type Accepted = { readonly revision: number };
export type SendMessageResult = Accepted & RecentMessage;
export type StateResult = Accepted & { readonly state: State };
export type ModeResult = Accepted & { readonly mode: Mode; readonly state: State };

/** Creates the conversation (with update-with-start); an existing one refuses with `already_exists` in the API. */
export const openUpdate = defineUpdate<Accepted & { created: boolean }>("open");
export const sendMessageUpdate = defineUpdate<SendMessageResult, [SendMessageInput & Asked]>("sendMessage");
export const withdrawMessageUpdate = defineUpdate<Accepted, [{ messageId: string } & Asked]>(
  "withdrawMessage",
);
/** Asked before the row is read, so that Postgres is not needed for it. */
export const cancelUpdate = defineUpdate<StateResult, [{ clearQueue: boolean }]>("cancel");
export const decideUpgradeUpdate = defineUpdate<
  ModeResult,
  [{ decision: Decision; toolCallId: string } & Asked]
>("decideUpgrade");
export const downgradeUpdate = defineUpdate<ModeResult, [Asked]>("downgrade");
export const triggerContinuationUpdate = defineUpdate<StateResult, [{ triggerContinuation: true } & Asked]>(
  "triggerContinuation",
);
/** Archiving stops the work first. */
export const archiveUpdate = defineUpdate<Accepted, [{ archived: boolean } & Asked]>("archive");
/** Completes when the work was stopped and the rows, children included, are gone. */
export const removeUpdate = defineUpdate<null, [{ remove: true }]>("remove");

/** Their inputs may be typed by hand: inputs.ts checks them. Each has one, because only an input can be signed. */
export const sendMessageSignal = defineSignal<[Partial<SendMessageInput> & { text: string }]>("sendMessage");
export const withdrawMessageSignal = defineSignal<[{ messageId: string }]>("withdrawMessage");
/** A parent's to its sub-agent says why. */
export const cancelSignal = defineSignal<[{ clearQueue?: boolean; by?: CancelledBy }]>("cancel");
export const decideUpgradeSignal =
  defineSignal<[{ decision: Decision; toolCallId?: string }]>("decideUpgrade");
export const downgradeSignal = defineSignal<[Readonly<Record<string, never>>]>("downgrade");
export const triggerContinuationSignal = defineSignal<[{ triggerContinuation: true }]>("triggerContinuation");
export const archiveSignal = defineSignal<[{ archived?: boolean }]>("archive");
export const removeSignal = defineSignal<[{ remove: true }]>("remove");
/** Sent by `npm start` before a worker polls (docs/machine.md, Restart), with the row as it is; null: there is none. */
export const restartedSignal =
  defineSignal<[{ policy: "idle" | "resume"; row: RowVersion | null; restarts: number }]>("restarted");

/** For operators: the workflow's own view, uncommitted revisions included. */
export const stateQuery = defineQuery<{
  conversation: Conversation;
  revision: number;
  /** Null before the first revision. */
  revisionId: string | null;
  /** Revisions that are not known to be in Postgres. */
  unconfirmed: number;
}>("state");
