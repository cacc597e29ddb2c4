/**
 * Owns: reading the messages of a page of request cycles (docs/cycles.md). Not here: what the cycles look like.
 */
import { and, asc, desc, eq, getTableColumns, gte, lt, sql, type SQL } from "drizzle-orm";
import type { Json, Message } from "../machine/message.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { toMessage } from "./rows.ts";
import { messages } from "./schema.ts";

export type CyclePage = {
  /** The id of a cycle: only what came before its root. */
  readonly before?: string | undefined;
  /** Of cycles, counted from the end; 1 or more. */
  readonly limit: number;
};

/** The projection shows no output, and that is most of a long run's bytes. */
const contentWithoutOutput = sql<Json>`case when ${messages.messageType} = 'tool'
  then jsonb_set(${messages.content}, '{0,output}', '[]') else ${messages.content} end`;

/**
 * The messages of the last cycles, and what lies between and after them; ascending, tool messages without their
 * output. A page with fewer cycles than the limit goes back to the conversation's first message.
 *
 * @returns null when `before` is no cycle of this conversation; empty when there is no such conversation.
 */
export async function readCycleMessages(
  db: Database,
  id: string,
  page: CyclePage,
): Promise<Message[] | null> {
  const inConversation = eq(messages.conversationId, cleanText(id));
  const isRoot = eq(messages.id, messages.cycleId);
  const rootsWhere = (condition: SQL | undefined) =>
    db.orm
      .select({ sequence: messages.sequenceId })
      .from(messages)
      .where(and(inConversation, isRoot, condition))
      .orderBy(desc(messages.sequenceId))
      .limit(page.limit);

  let isBefore: SQL | undefined;
  if (page.before !== undefined) {
    const [bound] = await rootsWhere(eq(messages.id, cleanText(page.before)));
    if (bound === undefined) return null;
    isBefore = lt(messages.sequenceId, bound.sequence);
  }
  const roots = await rootsWhere(isBefore);
  const first = roots[page.limit - 1]?.sequence ?? 1;
  const rows = await db.orm
    .select({ ...getTableColumns(messages), content: contentWithoutOutput })
    .from(messages)
    .where(and(inConversation, gte(messages.sequenceId, first), isBefore))
    .orderBy(asc(messages.sequenceId));
  return rows.map(toMessage);
}
