/**
 * Owns: reading what was spent, and what becomes of it when a conversation is removed.
 * Not here: adding to it, which is a part of the commit (migrations/0004_spending.sql).
 */
import { sql } from "drizzle-orm";
import { NANODOLLARS, type Spent, type SpentView, type Sums } from "../protocol/spending.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { conversations } from "./schema.ts";

/** Days for which is kept what removed conversations have spent. */
const KEPT_DAYS = 90;

/** In SQL, as a part of the statement that reads a conversation. null: a sub-agent, for its parent's includes it. */
export const spentOf = sql<SpentView | null>`case when ${conversations.parentConversationId} is null then (
  select jsonb_build_object(
    'tokens', coalesce(sum(s.input_tokens + s.output_tokens + s.cache_read_tokens + s.cache_creation_tokens), 0),
    'dollars', case when coalesce(sum(s.unpriced_requests), 0) = 0
      then coalesce(sum(s.nanodollars), 0) / ${sql.raw(String(NANODOLLARS))} end)
  from spending s
  where s.conversation_id = ${conversations.id}) end`;

type Transaction = Parameters<Parameters<Database["sql"]["begin"]>[1]>[0];

const NOTHING: Spent = { tokens: 0, nanodollars: 0, isPartlyUnknown: false };

/**
 * What a conversation with its sub-agents, and all of them on a day, have spent.
 *
 * @param id null: a conversation that is yet to be made
 * @param day `YYYY-MM-DD`, UTC
 */
export async function readSums(db: Database, id: string | null, day: string): Promise<Sums> {
  const root = id === null ? null : cleanText(id);
  const rows = await db.sql<(Spent & { readonly isDay: boolean })[]>`
    with root as (select coalesce(parent_conversation_id, id) as id from conversations where id = ${root}::text)
    select
      false as "isDay",
      coalesce(sum(input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens), 0)::bigint as tokens,
      coalesce(sum(nanodollars), 0)::bigint as nanodollars,
      coalesce(sum(unpriced_requests), 0) > 0 as "isPartlyUnknown"
    from spending where conversation_id = (select id from root)
    union all
    select
      true,
      coalesce(sum(input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens), 0)::bigint,
      coalesce(sum(nanodollars), 0)::bigint,
      coalesce(sum(unpriced_requests), 0) > 0
    from spending where day = ${day}::date`;
  const sumOf = (wanted: boolean): Spent => {
    const found = rows.find(({ isDay }) => isDay === wanted);
    if (found === undefined) return NOTHING;
    const { isDay: _isDay, ...spent } = found;
    return spent;
  };
  return { conversation: sumOf(false), day: sumOf(true) };
}

/**
 * Keeps what a removed conversation has spent in the sums of its days, under the empty id: another conversation may take
 * its own. What is older than 90 days is forgotten.
 *
 * @param transaction that removes the conversation
 */
export async function keepSpentOf(transaction: Transaction, id: string): Promise<void> {
  await transaction`
    with gone as (
      delete from spending where conversation_id = ${id} returning *
    )
    insert into spending as s
    select '', day, model, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens,
      nanodollars, unpriced_requests
    from gone order by day, model
    on conflict (conversation_id, day, model) do update set
      input_tokens = s.input_tokens + excluded.input_tokens,
      output_tokens = s.output_tokens + excluded.output_tokens,
      cache_read_tokens = s.cache_read_tokens + excluded.cache_read_tokens,
      cache_creation_tokens = s.cache_creation_tokens + excluded.cache_creation_tokens,
      nanodollars = s.nanodollars + excluded.nanodollars,
      unpriced_requests = s.unpriced_requests + excluded.unpriced_requests`;
  await transaction`
    delete from spending
    where conversation_id = '' and day < (now() at time zone 'utc')::date - ${KEPT_DAYS}::integer`;
}
