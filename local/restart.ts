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
/** A continuation is requested again, whatever the policy. */
const GOES_ON: State["kind"] = "awaiting_continuation";
const AT_ONCE = 16;

/** Milliseconds for the conversations to come to rest; nothing breaks if one takes longer. */
const REST_WITHIN = 5000;

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
  /** Resolves when none of them looks busy any more; needs a worker. */
  readonly atRest: () => Promise<void>;
};

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
  const working = new Set([...rows.values()].flatMap(({ id, isWorking }) => (isWorking ? [id] : [])));
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
    atRest: () => (policy === "idle" ? comeToRest(databaseUrl, working) : Promise.resolve()),
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
    await handle.terminate("Its history was signed with another key.");
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  if (row?.isWorking !== true) return false;
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
 */
async function comeToRest(databaseUrl: string, working: ReadonlySet<string>): Promise<void> {
  if (working.size === 0) return;
  const over = new AbortController();
  const untilRest = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const ids = await workingConversations(databaseUrl, GOES_ON).catch(() => null);
      if (ids !== null && ![...ids].some((id) => working.has(id))) return;
      await pause(50);
    }
  };
  const late = pause(REST_WITHIN, undefined, { signal: over.signal });
  await Promise.race([untilRest(), late]);
  over.abort();
  await late.catch(() => undefined);
}

async function workingConversations(
  databaseUrl: string,
  except: State["kind"] | null = null,
): Promise<Set<string>> {
  const sql = openClient(databaseUrl, "bedrock start");
  const states = WORKING.filter((state) => state !== except);
  try {
    const rows = await sql<{ id: string }[]>`select id from conversations where state in ${sql(states)}`;
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
      returning id, revision::float8 as revision, revision_id as "revisionId", restarts, state in ${sql(WORKING)} as "isWorking"`;
    return new Map(rows.map((row) => [row.id, row]));
  } finally {
    await sql.end({ timeout: 2 });
  }
}
