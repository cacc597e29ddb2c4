/**
 * Owns: what has changed in the list of conversations since a client read it last. A cursor is the oldest transaction
 * that was still open then: whatever is committed later has its number, or a higher one. So a client gets some facts
 * twice, and misses none.
 */
import { eq, sql } from "drizzle-orm";
import type { Database } from "./connect.ts";
import { conversations } from "./schema.ts";
import { type ConversationView, toView, viewColumns } from "./views.ts";

/** Seconds for which removals are remembered. */
const REMEMBERED_SECONDS = 7 * 24 * 3600;

/** A conversation, and the cycle of its last message. */
export type Listed = { readonly view: ConversationView; readonly cycleId: string | null };

export type ListChanges = {
  /** As they are now; sub-agents are left out. */
  readonly changed: readonly Listed[];
  /** Ids that do not exist any more. An id in both lists was taken again. */
  readonly removed: readonly string[];
  /** For the next call. */
  readonly cursor: string;
};

const listedColumns = {
  ...viewColumns,
  cycleId: sql<string | null>`(
    select m.cycle_id from messages m where m.conversation_id = conversations.id
    order by m.sequence_id desc limit 1)`.as("last_cycle_id"),
};

type ListedRow = Parameters<typeof toView>[0] & { readonly cycleId: string | null };

const toListed = ({ cycleId, ...row }: ListedRow): Listed => ({
  view: toView(row),
  cycleId,
});

/** One conversation as the list has it; null when there is none. */
export async function listed(db: Database, id: string): Promise<Listed | null> {
  const [row] = await db.orm.select(listedColumns).from(conversations).where(eq(conversations.id, id));
  return row === undefined ? null : toListed(row);
}

/** The cursor for everything that is committed from now on. */
export async function listCursor(db: Database): Promise<string> {
  const [row] = await db.sql<{ cursor: string }[]>`select ${CURSOR(db)} as cursor`;
  return row?.cursor ?? "";
}

/** null: the cursor is none of this database's, or too old. Read the list anew. */
export async function listChanges(db: Database, cursor: string): Promise<ListChanges | null> {
  const known = /^(\d{1,20})\.(\d{1,12})$/.exec(cursor);
  const [, since = "", at = ""] = known ?? [];
  if (known === null || Date.now() / 1_000 - Number(at) > REMEMBERED_SECONDS) return null;
  return db.orm.transaction(
    async (transaction) => {
      const [head] = await transaction.execute<{ cursor: string; unknown: boolean }>(
        sql`select pg_snapshot_xmin(pg_current_snapshot())::text || '.' || extract(epoch from now())::bigint as cursor,
          ${since}::numeric > pg_snapshot_xmax(pg_current_snapshot())::text::numeric as unknown`,
      );
      if (head === undefined || head.unknown) return null;
      const removed = await transaction.execute<{ id: string }>(
        sql`select conversation_id as id from removals where changed >= ${since}::xid8`,
      );
      const changed = await transaction
        .select(listedColumns)
        .from(conversations)
        .where(sql`parent_conversation_id is null and changed >= ${since}::xid8`);
      return {
        changed: changed.map(toListed),
        removed: removed.map(({ id }) => id),
        cursor: head.cursor,
      };
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}

/** Forgets removals that no cursor asks for any more. */
export async function forgetRemovals(db: Database): Promise<void> {
  await db.sql`delete from removals where removed_at < now() - make_interval(secs => ${REMEMBERED_SECONDS})`;
}

const CURSOR = (db: Database) =>
  db.sql`pg_snapshot_xmin(pg_current_snapshot())::text || '.' || extract(epoch from now())::bigint`;
