/** Owns: reading stored messages, in the order of their sequence. Not here: writing them (commit.ts). */
import { createHash } from "node:crypto";
import { and, asc, desc, eq, gt, lt } from "drizzle-orm";
import type { Delivery, ImageBlock, Message } from "../machine/message.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { type MessageJson, messageOfJson, type Reader, toMessage } from "./rows.ts";
import { messages } from "./schema.ts";

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
  const { after, before, limit } = range;
  if (before !== undefined && after === undefined) return readLast(db.orm, id, limit, before);
  const rows = await db.orm
    .select()
    .from(messages)
    .where(
      and(
        eq(messages.conversationId, cleanText(id)),
        after === undefined ? undefined : gt(messages.sequenceId, after),
        before === undefined ? undefined : lt(messages.sequenceId, before),
      ),
    )
    .orderBy(asc(messages.sequenceId))
    .limit(limit);
  return rows.map(toMessage);
}

/** The last `n` messages in ascending order. */
export async function lastMessages(db: Database, id: string, n: number): Promise<Message[]> {
  return readLast(db.orm, id, n);
}

/** The last `n` messages, or those before a sequence, in ascending order; also inside a transaction. */
export async function readLast(reader: Reader, id: string, n: number, before?: number): Promise<Message[]> {
  const rows = await reader
    .select()
    .from(messages)
    .where(
      and(
        eq(messages.conversationId, cleanText(id)),
        before === undefined ? undefined : lt(messages.sequenceId, before),
      ),
    )
    .orderBy(desc(messages.sequenceId))
    .limit(n);
  return rows.reverse().map(toMessage);
}

/**
 * Whether a message of any type, stored or waiting, has this id. With a second one, no later commit could be stored.
 */
export async function isTaken(db: Database, id: string, messageId: string): Promise<boolean> {
  const conversationId = cleanText(id);
  const wanted = cleanText(messageId);
  const [found] = await db.sql<{ readonly taken: boolean }[]>`
    select exists (select from messages where conversation_id = ${conversationId} and id = ${wanted})
      or exists (select from queue where conversation_id = ${conversationId} and message_id = ${wanted})
      as taken`;
  return found?.taken === true;
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
  const conversationId = cleanText(id);
  const wanted = cleanText(messageId);
  // One statement reads one moment: a message that moves out of the queue meanwhile is not missed.
  const [found] = await db.sql<
    { readonly waiting: Omit<FoundMessage, "sequence"> | null; readonly stored: MessageJson | null }[]
  >`select
      (select jsonb_build_object('text', text, 'images', images, 'delivery', delivery) from queue
       where conversation_id = ${conversationId} and message_id = ${wanted}) as waiting,
      (select to_jsonb(messages) from messages
       where conversation_id = ${conversationId} and id = ${wanted}) as stored`;
  if (found === undefined) return null;
  if (found.waiting !== null) return { ...found.waiting, sequence: null };
  const message = found.stored === null ? null : messageOfJson(found.stored);
  if (message?.type !== "user") return null;
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
  const images = message.content.flatMap((block) => (block.type === "image" ? [block] : []));
  return { text, images, delivery: message.display.kind, sequence: message.sequence };
}

/**
 * The given tool_use ids that this conversation has used already, in the order given. They are looked up among the
 * results, because exactly one result answers every call before the next request (rule 6).
 */
export async function usedToolCallIds(
  db: Database,
  id: string,
  toolCallIds: readonly string[],
): Promise<string[]> {
  if (toolCallIds.length === 0) return [];
  const hashes = toolCallIds.map((toolCallId) =>
    createHash("md5").update(cleanText(toolCallId)).digest("hex"),
  );
  const rows = await db.sql<{ id: string }[]>`
    select content -> 0 ->> 'toolCallId' as id from messages
    where conversation_id = ${cleanText(id)} and message_type = 'tool'
      and md5(content -> 0 ->> 'toolCallId') in ${db.sql(hashes)}`;
  const used = new Set(rows.map((row) => row.id));
  return toolCallIds.filter((toolCallId) => used.has(cleanText(toolCallId)));
}
