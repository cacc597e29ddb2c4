/** Owns: storing spans and removing old ones. Reading those of a turn: turns.ts. */
import type { SpanRecord } from "../observability/spans.ts";
import type { Database } from "./connect.ts";
import { encodeJson } from "./json.ts";

/**
 * Stores spans, in one statement. Those of conversations that are removed are left out: the lock keeps a removal waiting
 * until the rest is stored.
 */
export async function storeSpans(db: Database, spans: readonly SpanRecord[]): Promise<void> {
  const rows = encodeJson(
    spans.map(({ startedAt, endedAt, ...span }) => ({
      ...span,
      startedAt: new Date(startedAt).toISOString(),
      endedAt: new Date(endedAt).toISOString(),
    })),
  );
  await db.sql`
    with kept as (
      select id from conversations
      where id in (select value ->> 'conversationId' from jsonb_array_elements(${rows}::text::jsonb))
      for key share
    )
    insert into spans (
      conversation_id, cycle_id, operation_id, trace_id, span_id, name, started_at, ended_at, marks, attributes)
    select s."conversationId", s."cycleId", s."operationId", s."traceId", s."spanId", s.name, s."startedAt",
      s."endedAt", s.marks, s.attributes
    from jsonb_to_recordset(${rows}::text::jsonb) as s (
      "conversationId" text, "cycleId" text, "operationId" text, "traceId" text, "spanId" text, name text,
      "startedAt" timestamptz, "endedAt" timestamptz, marks jsonb, attributes jsonb)
    join kept on kept.id = s."conversationId"`;
}

/** Rows of one statement: locks are held for a moment only. */
const SWEPT = 10_000;

/** Removes the spans that began more than `days` days ago. Returns how many. */
export async function deleteOldSpans(db: Database, days: number): Promise<number> {
  for (let removed = 0; ;) {
    const { count } = await db.sql`
      delete from spans where ctid in (
        select ctid from spans where started_at < now() - ${days} * interval '1 day' limit ${SWEPT})`;
    removed += count;
    if (count < SWEPT) return removed;
  }
}
