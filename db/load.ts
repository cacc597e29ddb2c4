/** Owns: rebuilding a conversation's value from its rows, exactly as it was committed (rule 10). */
import { eq, sql } from "drizzle-orm";
import type { StoredConversation } from "../protocol/activities.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import type { KnownTitle } from "../protocol/title.ts";
import type { RecentMessage } from "../protocol/workflow.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { conversationColumns, toConversation, toConfig } from "./rows.ts";
import { conversations } from "./schema.ts";

export type LoadedConversation = StoredConversation & {
  readonly title: KnownTitle;
  readonly config: ConversationConfig;
  readonly lastEvent: number;
};

const RECENT = 64;

/** null when there is no such conversation (REQ-BED-007). */
export async function loadConversation(
  db: Database,
  id: string,
  askedMessageIds: readonly string[] = [],
): Promise<LoadedConversation | null> {
  const asked = JSON.stringify(askedMessageIds.map(cleanText));
  // One statement: the value and the ids are of the same moment.
  const [row] = await db.orm
    .select({
      ...conversationColumns,
      known: sql<string[]>`(
        select coalesce(jsonb_agg(a.id), '[]') from jsonb_array_elements_text(${asked}::text::jsonb) as a (id)
        where exists (select from messages m where m.conversation_id = conversations.id and m.id = a.id)
          or exists (select from queue q where q.conversation_id = conversations.id and q.message_id = a.id))`,
      recent: sql<RecentMessage[]>`(
        select coalesce(jsonb_agg(jsonb_build_object(
          'messageId', r.id, 'sequence', r.sequence_id, 'delivery', r.kind) order by r.sequence_id), '[]') from (
          select m.id, m.sequence_id, m.display_data ->> 'kind' as kind from messages m
          where m.conversation_id = conversations.id and m.message_type = 'user'
          order by m.sequence_id desc limit ${RECENT}) as r)`,
    })
    .from(conversations)
    .where(eq(conversations.id, cleanText(id)));
  if (row === undefined) return null;
  if (row.revisionId === null) throw new Error(`conversation ${id} has no revision`);
  return {
    config: toConfig(row),
    conversation: toConversation(row),
    revision: row.revision,
    revisionId: row.revisionId,
    restarts: row.restarts,
    archived: row.archived,
    title: { text: row.titled ? row.title : null, event: row.lastEvent },
    createdAt: row.createdAt.toISOString(),
    lastEvent: row.lastEvent,
    knownMessageIds: row.known,
    recentMessages: [
      ...row.recent,
      ...row.queue.map(({ messageId, delivery }) => ({ messageId, sequence: null, delivery })),
    ],
  };
}
