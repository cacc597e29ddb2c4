/**
 * Owns: telling the conversations that the whole system was down (REQ-BED-007). It is said before a worker polls, so
 * that nobody goes on first.
 * Not here: what a conversation makes of it (machine/).
 */
import { type Client, WorkflowNotFoundError } from "@temporalio/client";
import { openClient } from "../db/connect.ts";
import type { State } from "../machine/conversation.ts";
import { CONVERSATION_WORKFLOW, CONVERSATIONS_QUEUE, restartedSignal } from "../workflows/contract.ts";
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
const AT_ONCE = 16;

export type RestartOptions = {
  readonly client: Client;
  readonly databaseUrl: string;
  readonly policy: RestartPolicy;
  readonly onProgress?: Report;
};

/**
 * Sends `restarted` to every open conversation, and returns to how many. A conversation whose row is in a working
 * state although its workflow is gone (the Temporal database was lost) is started anew, so that it does not look
 * busy for ever.
 */
export async function sendRestarted(options: RestartOptions): Promise<number> {
  const { client, databaseUrl, policy, onProgress } = options;
  // What Temporal lists may be seconds old, so the rows are asked too.
  const working = await workingConversations(databaseUrl);
  const ids = new Set(working);
  const query = `WorkflowType = "${CONVERSATION_WORKFLOW}" AND ExecutionStatus = "Running"`;
  for await (const { workflowId } of client.workflow.list({ query })) ids.add(workflowId);

  const rest = [...ids];
  let sent = 0;
  const sendRest = async () => {
    for (let id = rest.pop(); id !== undefined; id = rest.pop()) {
      if (await sendTo(client, id, policy, working.has(id))) sent++;
      onProgress?.(`${sent} of ${ids.size} conversations`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendRest));
  return sent;
}

/** Whether there is, or now is, a workflow that was told. */
async function sendTo(client: Client, id: string, policy: RestartPolicy, working: boolean): Promise<boolean> {
  try {
    await client.workflow.getHandle(id).signal(restartedSignal, { policy });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  if (!working) return false;
  await client.workflow.signalWithStart(CONVERSATION_WORKFLOW, {
    workflowId: id,
    taskQueue: CONVERSATIONS_QUEUE,
    args: [{ conversationId: id }],
    signal: restartedSignal,
    signalArgs: [{ policy }],
  });
  return true;
}

async function workingConversations(databaseUrl: string): Promise<ReadonlySet<string>> {
  const sql = openClient(databaseUrl, "bedrock launcher");
  try {
    const rows = await sql<{ id: string }[]>`select id from conversations where state in ${sql(WORKING)}`;
    return new Set(rows.map((row) => row.id));
  } finally {
    await sql.end({ timeout: 2 });
  }
}
