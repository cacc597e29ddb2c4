/**
 * Owns: lists of conversations, and the two changes that need no state machine: a title, and removal.
 */
import type { Database } from "./connect.ts";
import type { ConversationView, WindowOf } from "./views.ts";

export type Listing = {
  readonly archived: "false" | "true" | "all";
  /** Part of a title, in any case; empty: all. */
  readonly q: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `nextCursor` of the page before; null: the first page. */
  readonly cursor: string | null;
};

export type Page = { readonly conversations: readonly ConversationView[]; readonly nextCursor: string | null };

/** The cursor was not made by `listConversations`. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** Newest first, sub-agents left out. Rejects with InvalidCursor. */
export async function listConversations(db: Database, listing: Listing, windowOf: WindowOf): Promise<Page> {
  throw new Error("todo");
}

/** The sub-agents of a conversation, oldest first. */
export async function children(db: Database, id: string, windowOf: WindowOf): Promise<ConversationView[]> {
  throw new Error("todo");
}

/** Renames; the slug stays. False when there is no such conversation. */
export async function setTitle(db: Database, id: string, title: string): Promise<boolean> {
  throw new Error("todo");
}

export async function conversationExists(db: Database, id: string): Promise<boolean> {
  throw new Error("todo");
}

/** The last committed step; null when there is no such conversation. */
export async function stepOf(db: Database, id: string): Promise<number | null> {
  throw new Error("todo");
}

/** Removes the rows, those of sub-agents included, and tells listeners of each. False when there was none. */
export async function deleteConversation(db: Database, id: string): Promise<boolean> {
  throw new Error("todo");
}
