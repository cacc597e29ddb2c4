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
  /** A cycle's id, or a sequence: only cycles that began before it. */
  readonly before?: string | undefined;
  /** Number of cycles, counted from the end; 1 or more. */
  readonly limit: number;
};

/** The same condition as in the fold (machine/cycles.ts). */
const isRoot = sql`${messages.messageType} = 'user' and ${messages.displayData}->>'kind' <> 'steer'`;

/** The projection shows no output, and the output is most of a long run's bytes. */
const contentWithoutOutput = sql<Json>`case when ${messages.messageType} = 'tool'
  then jsonb_set(${messages.content}, '{0,output}', '[]') else ${messages.content} end`;

/** The largest Postgres integer. */
const MAX_SEQUENCE = 2 ** 31 - 1;

/**
 * The messages of the last cycles, whole, and the messages between and after them; ascending, tool messages without
 * their output. A page with fewer cycles than the limit goes back to the conversation's first message. No message
 * before the page is read, because the fold may begin at any root.
 *
 * @returns null when `before` is neither a cycle of this conversation nor a sequence; empty when there is no such
 *   conversation.
 */
export async function readCycleMessages(
  db: Database,
  id: string,
  { before, limit }: CyclePage,
): Promise<Message[] | null> {
  const inConversation = eq(messages.conversationId, cleanText(id));
  const rootsWhere = (condition: SQL | undefined, order: typeof asc, count: number) =>
    db.orm
      .select({ sequence: messages.sequenceId })
      .from(messages)
      .where(and(inConversation, isRoot, condition))
      .orderBy(order(messages.sequenceId))
      .limit(count);

  let [bound, end]: [number | null, number | null] = [null, null];
  if (before !== undefined) {
    const [root] = await rootsWhere(eq(messages.id, cleanText(before)), asc, 1);
    bound = root?.sequence ?? (/^\d{1,10}$/.test(before) ? Number(before) : null);
    if (bound === null || bound > MAX_SEQUENCE) return null;
    // A sequence in the middle of a cycle does not cut that cycle.
    const [next] = await rootsWhere(gte(messages.sequenceId, bound), asc, 1);
    end = next?.sequence ?? null;
  }
  const isBefore = bound === null ? undefined : lt(messages.sequenceId, bound);
  const roots = await rootsWhere(isBefore, desc, limit);
  const first = roots[limit - 1]?.sequence ?? 1;
  const last = end === null ? undefined : lt(messages.sequenceId, end);
  const rows = await db.orm
    .select({ ...getTableColumns(messages), content: contentWithoutOutput })
    .from(messages)
    .where(and(inConversation, gte(messages.sequenceId, first), last))
    .orderBy(asc(messages.sequenceId));
  return rows.map(toMessage);
}
