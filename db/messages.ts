/** Owns: reading stored messages, in the order of their sequence. Not here: writing them (commit.ts). */
import type { Delivery, ImageBlock, Message } from "../machine/message.ts";
import type { Database } from "./connect.ts";

export type MessageRange = {
  /** Exclusive sequences. */
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
};

/**
 * Messages in ascending order. With `after` or without bounds: the first `limit` of the range; with `before`
 * alone: the last `limit` before it. Empty when there is no such conversation.
 */
export async function readMessages(db: Database, id: string, range: MessageRange): Promise<Message[]> {
  throw new Error("todo");
}

/** The last `n` messages in ascending order. */
export async function lastMessages(db: Database, id: string, n: number): Promise<Message[]> {
  throw new Error("todo");
}

export type FoundMessage = {
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly delivery: Delivery;
  /** null while it waits in the queue. */
  readonly sequence: number | null;
};

/** A user's message, delivered or queued, by its id; null when there is none. */
export async function findMessage(db: Database, id: string, messageId: string): Promise<FoundMessage | null> {
  throw new Error("todo");
}

/** Those of the given tool_use ids that this conversation has used already, in the order given. */
export async function usedToolCallIds(
  db: Database,
  id: string,
  toolCallIds: readonly string[],
): Promise<string[]> {
  throw new Error("todo");
}
