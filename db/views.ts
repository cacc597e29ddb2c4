/**
 * Owns: the shape in which a conversation is shown (docs/http.md, Conversation), and reading one.
 * Not here: lists and the changes that need no workflow (conversations.ts), messages (messages.ts).
 */
import type { Mode, QueuedMessage, State, Usage } from "../machine/conversation.ts";
import type { Message } from "../machine/message.ts";
import type { Profile } from "../machine/profile.ts";
import type { Database } from "./connect.ts";

/** Tokens that a model's window holds; the smallest known one for an unknown model (REQ-BED-022). */
export type WindowOf = (model: string) => number;

export type UsageView = Usage & {
  readonly contextWindow: number;
  /** contextUsed / contextWindow. */
  readonly contextRatio: number;
  /** 80 % or more. */
  readonly warning: boolean;
};

export type ConversationView = Profile & {
  readonly slug: string;
  readonly title: string;
  readonly mode: Mode;
  readonly state: State;
  readonly queue: readonly QueuedMessage[];
  readonly usage: UsageView;
  /** Ids of the conversations that continue this one, oldest first. */
  readonly continuedTo: readonly string[];
  readonly archived: boolean;
  /** The number of the last event. */
  readonly lastEvent: number;
  /** RFC 3339 UTC, as are all times. */
  readonly createdAt: string;
  readonly updatedAt: string;
};

/** One conversation, sub-agents included; null when there is none. */
export async function getConversation(db: Database, id: string, windowOf: WindowOf): Promise<ConversationView | null> {
  throw new Error("todo");
}

export type Snapshot = {
  readonly conversation: ConversationView;
  readonly messages: readonly Message[];
  readonly lastEvent: number;
};

/** A conversation and its last `limit` messages as of one moment, for the beginning of an event stream. */
export async function readSnapshot(
  db: Database,
  id: string,
  limit: number,
  windowOf: WindowOf,
): Promise<Snapshot | null> {
  throw new Error("todo");
}
