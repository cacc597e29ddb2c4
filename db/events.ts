/** Owns: reading the numbered, durable events of a conversation (docs/http.md, Events). */
import { and, asc, eq, gt } from "drizzle-orm";
import type { Notice } from "../machine/effect.ts";
import type { Message } from "../machine/message.ts";
import type { SpentView } from "../protocol/spending.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { toMessage } from "./rows.ts";
import { conversations, events, messages } from "./schema.ts";

type StoredEvent =
  | Notice
  | { readonly name: "message.added"; readonly data: Message }
  | {
      readonly name: "conversation.changed";
      readonly data: { readonly title: string; readonly archived: boolean };
    }
  | { readonly name: "spending.changed"; readonly data: SpentView };

export type EventView = StoredEvent & {
  /** 1, 2, 3, … within the conversation, without gaps. */
  readonly number: number;
};

/** At most `limit` events with a number above `after`, ascending (REQ-BED-011). */
export async function readEvents(
  db: Database,
  id: string,
  after: number,
  limit: number,
): Promise<EventView[]> {
  const rows = await db.orm
    .select({ event: events, message: messages })
    .from(events)
    .leftJoin(
      messages,
      and(eq(messages.conversationId, events.conversationId), eq(messages.id, events.messageId)),
    )
    .where(and(eq(events.conversationId, cleanText(id)), gt(events.number, after)))
    .orderBy(asc(events.number))
    .limit(limit);
  return rows.map(({ event, message }) => {
    const data = message === null ? event.data : toMessage(message);
    // Only commit_revisions and setTitle write events.
    return { number: event.number, name: event.name, data } as EventView;
  });
}

/** The number of the last event, 0 before the first; null when there is no such conversation. */
export async function lastEventOf(db: Database, id: string): Promise<number | null> {
  const [row] = await db.orm
    .select({ lastEvent: conversations.lastEvent })
    .from(conversations)
    .where(eq(conversations.id, cleanText(id)));
  return row?.lastEvent ?? null;
}
