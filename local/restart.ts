/**
 * Owns: telling the conversations that the whole system was down (REQ-BED-007). This happens before a worker polls, so
 * that no conversation goes on first.
 * Not here: how a conversation reacts to it (machine/).
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Client, WorkflowNotFoundError } from "@temporalio/client";
import { openClient } from "../db/connect.ts";
import type { State } from "../machine/conversation.ts";
import { WORKFLOW_TASK_TIMEOUT_MS } from "../protocol/timing.ts";
import { CONVERSATION_WORKFLOW, restartedSignal } from "../protocol/workflow.ts";
import type { RestartPolicy } from "../config.ts";
import type { Report } from "./progress.ts";

/** States in which a conversation waits for work that a process was doing. */
const WORKING: readonly State["kind"][] = [
  "awaiting_llm",
  "llm_requesting",
  "tool_executing",
  "awaiting_sub_agents",
  "cancelling",
  "awaiting_continuation",
];
/** A continuation is requested again, whatever the policy, so it need not come to rest. */
const BUSY = WORKING.filter((state) => state !== "awaiting_continuation");
const AT_ONCE = 16;

/** Milliseconds for the conversations to come to rest; nothing breaks if one takes longer. */
const REST_WITHIN = 60_000;
/** Milliseconds between two looks, and for the answer to one. */
const LOOK = 100;
const ANSWER_WITHIN = 3000;

export type RestartOptions = {
  readonly client: Client;
  readonly databaseUrl: string;
  readonly taskQueue: string;
  readonly policy: RestartPolicy;
  /**
   * True if the workflows can no longer read their histories, because the key has changed: each begins again from its
   * row.
   */
  readonly anew?: boolean;
  readonly onProgress?: Report;
};

export type Announced = {
  /** The number of conversations that were told of the restart. */
  readonly told: number;
  /**
   * With the policy `idle`, waits until each of them that was at work has come to rest; needs a worker. Resolves to the
   * number of those that have not within the time.
   */
  readonly atRest: (options?: RestOptions) => Promise<number>;
};

type RestOptions = {
  readonly report?: Report;
  readonly signal?: AbortSignal;
  /** Milliseconds; 60000 by default. */
  readonly within?: number;
};

/** The sentence for the user about conversations that have not come to rest. */
export function stillAtWork(count: number): string {
  return `Warning: after ${REST_WITHIN / 1000} s ${conversations(count)} of before the restart still looked busy. The start goes on; a worker brings them to rest when it reaches them (logs/worker.log says what holds it up).`;
}

const conversations = (count: number): string => (count === 1 ? "1 conversation" : `${count} conversations`);

/**
 * Sends `restarted` to every open conversation, with the version of its row. A workflow with another version, because
 * Temporal's database came back as it was earlier, loads the row. If the workflow is gone (the Temporal database was
 * lost) and the row is in a working state, a new workflow is started. Without it the conversation would look busy for
 * ever.
 */
export async function sendRestarted(options: RestartOptions): Promise<Announced> {
  const { client, databaseUrl, taskQueue, policy, onProgress } = options;
  // Temporal's list may be seconds old, so the rows are read, too.
  const ids = await workingConversations(databaseUrl);
  const query = `WorkflowType = "${CONVERSATION_WORKFLOW}" AND ExecutionStatus = "Running" AND TaskQueue = "${taskQueue}"`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);

  // No worker polls yet: a conversation that works now was working when the system went down.
  const rows = await countRestart(databaseUrl, [...ids]);
  const working = new Map(
    [...rows.values()].flatMap(({ id, isWorking, lastEvent }) =>
      isWorking ? [[id, lastEvent] as const] : [],
    ),
  );
  const rest = [...ids];
  let told = 0;
  const sendRest = async () => {
    for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
      if (await sendTo(options, id, rows.get(id) ?? null)) told++;
      onProgress?.(`${told} of ${ids.size} conversations`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendRest));
  return {
    told,
    atRest: (options = {}) =>
      policy === "idle" ? comeToRest(databaseUrl, working, options) : Promise.resolve(0),
  };
}

/** Resolves to whether a workflow got the signal, an existing or a new one. */
async function sendTo(
  { client, taskQueue, policy, anew = false }: RestartOptions,
  id: string,
  row: Row | null,
): Promise<boolean> {
  const news = {
    policy,
    row: row === null ? null : { revision: row.revision, revisionId: row.revisionId },
    restarts: row?.restarts ?? 0,
  };
  try {
    const handle = client.workflow.getHandle(id);
    if (!anew) {
      await handle.signal(restartedSignal, news);
      return true;
    }
    await handle.terminate("Its history was encrypted with another key.");
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  if (row?.goesOn !== true) return false;
  await client.workflow.signalWithStart(CONVERSATION_WORKFLOW, {
    workflowId: id,
    taskQueue,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    args: [{ conversationId: id }],
    signal: restartedSignal,
    signalArgs: [news],
  });
  return true;
}

/**
 * After `ready`, no client should see a conversation in a working state on which no worker works. Nothing else depends
 * on it: where Postgres does not answer, or the driver loses a query, the start goes on when the time is over.
 *
 * @param working the number of the last event of each that was at work
 */
async function comeToRest(
  databaseUrl: string,
  working: ReadonlyMap<string, number>,
  { report, signal, within = REST_WITHIN }: RestOptions,
): Promise<number> {
  let waiting = working;
  const deadline = performance.now() + within;
  while (waiting.size > 0 && performance.now() < deadline && signal?.aborted !== true) {
    report?.(`waiting for ${conversations(waiting.size)} to come to rest`);
    const busy = await Promise.race([
      stillBusy(databaseUrl, waiting).catch(() => null),
      pause(ANSWER_WITHIN, null, { ref: false }),
    ]);
    if (busy !== null) waiting = new Map([...waiting].filter(([id]) => busy.has(id)));
    if (waiting.size > 0) await pause(LOOK);
  }
  return waiting.size;
}

/**
 * Those that have not been at rest since their event of this number. One that a client has given new work does not
 * count: its events show that it was at rest.
 */
async function stillBusy(
  databaseUrl: string,
  lastEvents: ReadonlyMap<string, number>,
): Promise<ReadonlySet<string>> {
  const sql = openClient(databaseUrl, "bedrock start");
  try {
    const rows = await sql<{ id: string }[]>`
      select id from conversations
      join jsonb_each_text(${JSON.stringify(Object.fromEntries(lastEvents))}::text::jsonb) as asked on key = id
      where state in ${sql(BUSY)} and not exists (
        select from events
        where conversation_id = id and number > value::bigint and name = 'state.changed'
          and data #>> '{state,kind}' not in ${sql(BUSY)})`;
    return new Set(rows.map((row) => row.id));
  } finally {
    await sql.end({ timeout: 2 });
  }
}

async function workingConversations(databaseUrl: string): Promise<Set<string>> {
  const sql = openClient(databaseUrl, "bedrock start");
  try {
    const rows = await sql<{ id: string }[]>`select id from conversations where state in ${sql(WORKING)}`;
    return new Set(rows.map((row) => row.id));
  } finally {
    await sql.end({ timeout: 2 });
  }
}

/** The row of a conversation; `revision` and `revisionId` are its version. */
type Row = {
  readonly id: string;
  readonly revision: number;
  readonly revisionId: string;
  readonly restarts: number;
  readonly isWorking: boolean;
  /** It has something to do that does not wait for a person: work, or messages that wait. */
  readonly goesOn: boolean;
  readonly lastEvent: number;
};

/**
 * Counts the restart in each row. From then on no effect begins that was ordered before: its task may have waited in
 * Temporal for a worker.
 */
async function countRestart(databaseUrl: string, ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
  if (ids.length === 0) return new Map();
  const sql = openClient(databaseUrl, "bedrock start");
  try {
    const rows = await sql<Row[]>`
      update conversations set restarts = restarts + 1 where id in ${sql(ids)}
      returning id, revision::float8 as revision, revision_id as "revisionId", restarts, state in ${sql(WORKING)} as "isWorking",
        state in ${sql(WORKING)} or exists (select from queue where conversation_id = conversations.id) as "goesOn",
        last_event::float8 as "lastEvent"`;
    return new Map(rows.map((row) => [row.id, row]));
  } finally {
    await sql.end({ timeout: 2 });
  }
}
