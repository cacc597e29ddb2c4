/**
 * Owns: telling the conversations that the whole system was down (REQ-BED-007). It is said before a worker polls, so
 * that nobody goes on first.
 * Not here: what a conversation makes of it (machine/).
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
/** A continuation is asked for again, whatever the policy. */
const GOES_ON: State["kind"] = "awaiting_continuation";
const AT_ONCE = 16;

/** Milliseconds for the conversations to come to rest; nothing breaks if one takes longer. */
const REST_WITHIN = 5000;

export type RestartOptions = {
  readonly client: Client;
  readonly databaseUrl: string;
  readonly taskQueue: string;
  readonly policy: RestartPolicy;
  /** The workflows cannot read their histories any more (the key is another): each is begun anew, from its row. */
  readonly anew?: boolean;
  readonly onProgress?: Report;
};

export type Announced = {
  /** How many conversations were told. */
  readonly told: number;
  /** Resolves when none of them looks busy any more; needs a worker. */
  readonly atRest: () => Promise<void>;
};

/**
 * Sends `restarted` to every open conversation, with its row as it is: a workflow that is elsewhere, because Temporal's
 * database came back as it was earlier, loads the row. One whose row is in a working state although its workflow is gone
 * (the Temporal database was lost) is started anew, so that it does not look busy for ever.
 */
export async function sendRestarted(options: RestartOptions): Promise<Announced> {
  const { client, databaseUrl, taskQueue, policy, onProgress } = options;
  // What Temporal lists may be seconds old, so the rows are asked too.
  const ids = await workingConversations(databaseUrl);
  const query = `WorkflowType = "${CONVERSATION_WORKFLOW}" AND ExecutionStatus = "Running" AND TaskQueue = "${taskQueue}"`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);

  // Whoever works now has worked when the system went down: nobody polls yet.
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

/** Whether there is, or now is, a workflow that was told. */
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
    await handle.terminate("Its history was signed with a key that is lost.");
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
 * Ready means that who looks now does not find a conversation at work that nobody works on. Nothing depends on it: where
 * Postgres cannot be asked, or the driver loses a query, the start goes on when the time is over.
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

/** What the row of a conversation says; `revision` and `revisionId` are its version. */
type Row = {
  readonly id: string;
  readonly revision: number;
  readonly revisionId: string;
  readonly restarts: number;
  readonly isWorking: boolean;
};

/** From now on nothing begins that was ordered before: a task may have waited in Temporal for a worker. */
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
