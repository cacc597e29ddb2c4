/**
 * Owns: telling the conversations that the whole system was down (REQ-BED-007). It is said before a worker polls, so
 * that nobody goes on first.
 * Not here: what a conversation makes of it (machine/).
 */
import { setTimeout as pause } from "node:timers/promises";
import { type Client, WorkflowNotFoundError } from "@temporalio/client";
import { openClient } from "../db/connect.ts";
import type { State } from "../machine/conversation.ts";
import { CONVERSATION_WORKFLOW, restartedSignal, WORKFLOW_TASK_TIMEOUT } from "../workflows/contract.ts";
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
  readonly onProgress?: Report;
};

export type Announced = {
  /** How many conversations were told. */
  readonly told: number;
  /** Resolves when none of them looks busy any more; needs a worker. */
  readonly atRest: () => Promise<void>;
};

/**
 * Sends `restarted` to every open conversation. One whose row is in a working state although its workflow is gone
 * (the Temporal database was lost) is started anew, so that it does not look busy for ever.
 */
export async function sendRestarted(options: RestartOptions): Promise<Announced> {
  const { client, databaseUrl, taskQueue, policy, onProgress } = options;
  // What Temporal lists may be seconds old, so the rows are asked too.
  const working = await workingConversations(databaseUrl);
  const ids = new Set(working);
  const query = `WorkflowType = "${CONVERSATION_WORKFLOW}" AND ExecutionStatus = "Running" AND TaskQueue = "${taskQueue}"`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);

  const rest = [...ids];
  let told = 0;
  const sendRest = async () => {
    for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
      if (await sendTo(options, id, working.has(id))) told++;
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
  { client, taskQueue, policy }: RestartOptions,
  id: string,
  working: boolean,
): Promise<boolean> {
  try {
    await client.workflow.getHandle(id).signal(restartedSignal, { policy });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  if (!working) return false;
  await client.workflow.signalWithStart(CONVERSATION_WORKFLOW, {
    workflowId: id,
    taskQueue,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
    args: [{ conversationId: id }],
    signal: restartedSignal,
    signalArgs: [{ policy }],
  });
  return true;
}

/** Ready means that who looks now does not find a conversation at work that nobody works on. */
async function comeToRest(databaseUrl: string, working: ReadonlySet<string>): Promise<void> {
  const deadline = performance.now() + REST_WITHIN;
  const restless = async () =>
    [...(await workingConversations(databaseUrl, GOES_ON))].some((id) => working.has(id));
  while (working.size > 0 && performance.now() < deadline && (await restless())) await pause(50);
}

async function workingConversations(
  databaseUrl: string,
  except: State["kind"] | null = null,
): Promise<Set<string>> {
  const sql = openClient(databaseUrl, "bedrock launcher");
  const states = WORKING.filter((state) => state !== except);
  try {
    const rows = await sql<{ id: string }[]>`select id from conversations where state in ${sql(states)}`;
    return new Set(rows.map((row) => row.id));
  } finally {
    await sql.end({ timeout: 2 });
  }
}
