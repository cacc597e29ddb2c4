/** Owns: how much there is to do, for the metrics: conversations by state, and the messages that wait. */
import type { Backlog } from "../observability/metrics.ts";
import type { Database } from "./connect.ts";

export async function readBacklog(db: Database): Promise<Backlog> {
  const states = await db.sql<{ state: string; count: number }[]>`
    select state, count(*)::float8 as count from conversations where not archived group by state`;
  const [waiting] = await db.sql<{ queued: number; oldest: number }[]>`
    select count(*)::float8 as queued, coalesce(max(extract(epoch from now() - q.created_at))
      filter (where c.machine ->> 'queueHeld' is null), 0)::float8 as oldest
    from queue q join conversations c on c.id = q.conversation_id`;
  return {
    conversations: Object.fromEntries(states.map(({ state, count }) => [state, count])),
    queued: waiting?.queued ?? 0,
    oldestSeconds: waiting?.oldest ?? 0,
  };
}
