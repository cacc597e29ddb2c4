/** Owns: reading what is stored of a turn, for observability/turn.ts: its states, its spans, when it began and ended. */
import type { State } from "../machine/conversation.ts";
import type { RunStopReason } from "../machine/message.ts";
import type { SpanRecord } from "../observability/spans.ts";
import type { TurnRecord } from "../observability/turn.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";

/** States and spans of one turn. The longest turns have about two states a round, and a thousand rounds. */
const MOST_STATES = 20_000;
const MOST_SPANS = 20_000;
/** Milliseconds before the message was taken up in which its earliest span may begin: requests are repeated that long. */
const BEFORE_MS = 10 * 60_000;
/** Milliseconds after the end of a turn in which its last span begins. */
const AFTER_MS = 60_000;

/** null: there is no such turn; its message may still be waiting. */
export async function readTurn(
  db: Database,
  givenId: string,
  givenCycle: string,
): Promise<TurnRecord | null> {
  const [conversationId, cycleId] = [cleanText(givenId), cleanText(givenCycle)];
  const [root] = await db.sql<Root[]>`
    select m.created_at as "takenUpAt", e.number, c.awaits, c.claim ->> 'operationId' as claimed,
      -- Only these have waited. The queue's events are looked for from the beginning of the conversation.
      case when m.display_data ->> 'kind' = 'followUp' then (
        select min((q.value ->> 'createdAt')::timestamptz)
        from events w, jsonb_array_elements(w.data -> 'queue') q
        where w.conversation_id = m.conversation_id and w.name = 'queue.changed' and w.number < e.number
          and q.value ->> 'messageId' = m.id) end as "queuedAt"
    from messages m
    join conversations c on c.id = m.conversation_id
    join events e on e.conversation_id = m.conversation_id and e.message_id = m.id
    where m.conversation_id = ${conversationId} and m.id = ${cycleId} and m.message_type = 'user'
      and m.display_data ->> 'kind' <> 'steer'`;
  if (root === undefined) return null;
  const rows = await db.sql<StateRow[]>`
    select created_at as at, data #>> '{state,kind}' as kind,
      coalesce(data #>> '{state,requestId}', data #>> '{state,operationId}', data #>> '{state,toolCall,id}')
        as "operationId",
      coalesce(data #>> '{state,stopping}', data #>> '{state,current,name}', data #>> '{state,retry,errorKind}')
        as name,
      coalesce(data #> '{state,retry}', 'null') <> 'null' as "isRetry",
      coalesce(jsonb_array_length(data #> '{state,all}'), 0) as tasks
    from events
    where conversation_id = ${conversationId} and number > ${root.number} and name = 'state.changed'
      and data ->> 'cycleId' = ${cycleId}
    order by number limit ${MOST_STATES}`;
  const states = rows.map((row) => ({ ...row, at: row.at.getTime() }));
  const [stop] = await db.sql<{ at: Date; reason: RunStopReason }[]>`
    select m.created_at as at, m.content #>> '{0,reason}' as reason
    from events e join messages m on m.conversation_id = e.conversation_id and m.id = e.message_id
    where e.conversation_id = ${conversationId} and e.number > ${root.number}
      and m.message_type = 'run_stop' and m.cycle_id = ${cycleId}
    order by e.number limit 1`;
  const takenUpAt = root.takenUpAt.getTime();
  const stoppedAt = stop?.at.getTime() ?? null;
  const last = stoppedAt ?? Date.now();
  const spans = await db.sql<SpanRow[]>`
    select conversation_id as "conversationId", cycle_id as "cycleId", operation_id as "operationId",
      trace_id as "traceId", span_id as "spanId", name, started_at as "startedAt", ended_at as "endedAt",
      marks, attributes
    from spans
    -- A steer, or a summary outside of a run, belongs to no cycle.
    where conversation_id = ${conversationId} and (cycle_id = ${cycleId} or cycle_id is null)
      and started_at between ${new Date((root.queuedAt?.getTime() ?? takenUpAt) - BEFORE_MS)}
        and ${new Date(last + AFTER_MS)}
    order by started_at limit ${MOST_SPANS}`;
  return {
    ...{ conversationId, cycleId, takenUpAt, states, stoppedAt },
    queuedAt: root.queuedAt?.getTime() ?? null,
    reason: stop?.reason ?? null,
    spans: spans.map((span) => ({
      ...span,
      startedAt: span.startedAt.getTime(),
      endedAt: span.endedAt.getTime(),
    })),
    begunOperationId: root.awaits !== null && root.claimed === root.awaits ? root.awaits : null,
  };
}

type Root = {
  readonly takenUpAt: Date;
  readonly number: number;
  readonly queuedAt: Date | null;
  readonly awaits: string | null;
  readonly claimed: string | null;
};

type StateRow = {
  readonly at: Date;
  readonly kind: State["kind"];
  readonly operationId: string | null;
  readonly name: string | null;
  readonly isRetry: boolean;
  readonly tasks: number;
};

type SpanRow = Omit<SpanRecord, "startedAt" | "endedAt"> & {
  readonly startedAt: Date;
  readonly endedAt: Date;
};
