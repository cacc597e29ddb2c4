/** Owns: lists of conversations, and the two changes that need no state machine: a title, and removal. */
import { and, asc, desc, eq, ilike, isNull, sql } from "drizzle-orm";
import type { RowVersion } from "../protocol/commit.ts";
import { COMMITS } from "./channels.ts";
import type { Database } from "./connect.ts";
import { forgetRemovals } from "./list-changes.ts";
import { deleteUnreferencedImages } from "./images.ts";
import { cleanText } from "./json.ts";
import { conversations } from "./schema.ts";
import { keepSpentOf } from "./spending.ts";
import { type ConversationView, toView, viewColumns } from "./views.ts";

export type Listing = {
  readonly archived: "false" | "true" | "all";
  /** Part of a title, in any case; empty: all. */
  readonly q: string;
  /** 1 to 1000. */
  readonly limit: number;
  /** `nextCursor` of the page before; null: the first page. */
  readonly cursor: string | null;
};

export type Page = {
  readonly conversations: readonly ConversationView[];
  readonly nextCursor: string | null;
};

/** The cursor was not made by `listConversations`. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
  constructor() {
    super("The cursor is not one that a listing has answered; leave it out to begin at the newest.");
  }
}

/** Newest first, sub-agents left out. Rejects with InvalidCursor. */
export async function listConversations(db: Database, listing: Listing): Promise<Page> {
  const from = listing.cursor === null ? null : decodeCursor(listing.cursor);
  const rows = await db.orm
    .select(viewColumns)
    .from(conversations)
    .where(
      and(
        isNull(conversations.parentConversationId),
        listing.archived === "all" ? undefined : eq(conversations.archived, listing.archived === "true"),
        listing.q === "" ? undefined : ilike(conversations.title, `%${escapeLike(cleanText(listing.q))}%`),
        from === null
          ? undefined
          : sql`(${conversations.createdAt}, ${conversations.id}) < (${from.createdAt}::timestamptz, ${from.id})`,
      ),
    )
    .orderBy(desc(conversations.createdAt), desc(conversations.id))
    .limit(listing.limit + 1);
  const shown = rows.slice(0, listing.limit).map((row) => toView(row));
  const last = shown.at(-1);
  return {
    conversations: shown,
    nextCursor: rows.length > listing.limit && last !== undefined ? encodeCursor(last) : null,
  };
}

function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, "\\$&");
}

/** Where a page ended: opaque to clients. */
type Position = { readonly createdAt: string; readonly id: string };

function encodeCursor({ createdAt, id }: Position): string {
  return Buffer.from(JSON.stringify([createdAt, id])).toString("base64url");
}

function decodeCursor(cursor: string): Position {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    throw new InvalidCursor();
  }
  const [createdAt, id] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof createdAt !== "string" || typeof id !== "string" || !isTimestamp(createdAt)) {
    throw new InvalidCursor();
  }
  return { createdAt, id: cleanText(id) };
}

/** Whether the text is a moment that exists, so that Postgres accepts it, too: 30 February reads as 2 March. */
function isTimestamp(text: string): boolean {
  const at = Date.parse(text);
  return at >= 0 && new Date(at).toISOString() === text;
}

/** The sub-agents of a conversation, oldest first (REQ-BED-008). */
export async function children(db: Database, id: string): Promise<ConversationView[]> {
  const rows = await db.orm
    .select(viewColumns)
    .from(conversations)
    .where(eq(conversations.parentConversationId, cleanText(id)))
    .orderBy(asc(conversations.createdAt), asc(conversations.id));
  return rows.map((row) => toView(row));
}

/** Renames; the slug stays. The number of the event that tells of it; null when there is no such conversation. */
export async function setTitle(db: Database, id: string, title: string): Promise<number | null> {
  // One statement: the number of the event is given under the row's lock, as in a commit (rule 3).
  const [row] = await db.sql<{ event: number }[]>`
    with renamed as (
      update conversations
      set title = ${cleanText(title)}, titled = true, last_event = last_event + 1, updated_at = now()
      where id = ${cleanText(id)} returning *
    ), event as (
      insert into events (conversation_id, number, name, data, created_at)
      select id, last_event, 'conversation.changed',
        jsonb_build_object('title', title, 'archived', archived), updated_at from renamed
    )
    select last_event::float8 as event, pg_notify(${COMMITS}, jsonb_build_object(
      'c', id, 's', revision, 'e', last_event, 'parent', parent_conversation_id)::text) from renamed`;
  return row?.event ?? null;
}

export async function conversationExists(db: Database, id: string): Promise<boolean> {
  return (await versionOf(db, id)) !== null;
}

/** The last committed revision and its id; null when there is no such conversation. */
export async function versionOf(db: Database, id: string): Promise<RowVersion | null> {
  const [row] = await db.orm
    .select({ revision: conversations.revision, revisionId: conversations.revisionId })
    .from(conversations)
    .where(eq(conversations.id, cleanText(id)));
  // A row without a revision is not seen outside of the commit that makes it.
  return row === undefined ? null : { revision: row.revision, revisionId: row.revisionId ?? "" };
}

/**
 * Removes the rows, those of sub-agents included, and notifies listeners of each. False when there was none.
 *
 * @param createdAt of the conversation to remove: a late call must not remove a newer one that has taken the id
 */
export async function deleteConversation(
  db: Database,
  id: string,
  createdAt: string | null = null,
): Promise<boolean> {
  const meant = db.sql`id = ${cleanText(id)} and created_at = coalesce(${createdAt}::timestamptz, created_at)`;
  const found = await db.sql.begin(async (transaction) => {
    const rows = await transaction`
      with recursive doomed as (
        select id, parent_conversation_id from conversations where ${meant}
        union all
        select c.id, c.parent_conversation_id from conversations c join doomed d on c.parent_conversation_id = d.id
      )
      select pg_notify(${COMMITS}, jsonb_build_object(
        'c', id, 'deleted', true, 'parent', parent_conversation_id)::text) from doomed`;
    await transaction`delete from conversations where ${meant}`;
    if (rows.length > 0) await keepSpentOf(transaction, cleanText(id));
    return rows.length > 0;
  });
  await deleteUnreferencedImages(db);
  await forgetRemovals(db);
  return found;
}
