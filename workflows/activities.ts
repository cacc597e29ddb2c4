/** Owns: the options under which each activity is called (docs/temporal.md has the measurements behind them). */
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  proxyActivities,
  isCancellation,
  proxyLocalActivities,
  sleep,
  type ActivityInterfaceFor,
  type ActivityOptions,
} from "@temporalio/workflow";
import type { Sandbox } from "../machine/conversation.ts";
import type { ConversationActivities, HostActivities, ToolActivities } from "../protocol/activities.ts";
import {
  HEARTBEAT_TIMEOUT_MS,
  HOST_RUN_TIMEOUT_MS,
  HOST_START_TIMEOUT_MS,
  WORKFLOW_TASK_TIMEOUT_MS,
} from "../protocol/timing.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import { toolsQueue } from "../protocol/workflow.ts";

/** Performed at most once. To try an operation again, the machine orders it again (architecture, rule 5). */
const EFFECT: ActivityOptions = {
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
  startToCloseTimeout: "24 hours",
  // The workflow awaits the outcome of an aborted activity: a conversation becomes idle after the last process has
  // died, not before.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { maximumAttempts: 1 },
};

/** Harmless to repeat, so Temporal retries them until the database answers. */
const IDEMPOTENT: ActivityOptions = {
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
  startToCloseTimeout: "30 seconds",
  retry: { initialInterval: "200 milliseconds", maximumInterval: "1 second" },
};

export const { requestLlm, requestContinuation, executeTool } =
  proxyActivities<ConversationActivities>(EFFECT);

const idempotent = proxyActivities<ConversationActivities>(IDEMPOTENT);
export const load = trusted(idempotent.load);
export const commit = trusted(idempotent.commit);
export const takeBack = trusted(idempotent.takeBack);
export const messageExists = trusted(idempotent.messageExists);
export const remove = trusted(idempotent.remove);

/** Runs at once in the worker that has this workflow: there is nothing to wait for, and nothing to retry. */
export const { stopTools } = proxyLocalActivities<ConversationActivities>({
  startToCloseTimeout: WORKFLOW_TASK_TIMEOUT_MS,
  retry: { maximumAttempts: 1 },
});

/** Activities on the queue that only workers on this host poll. */
export const toolsOn = (host: string): ActivityInterfaceFor<ToolActivities> =>
  proxyActivities<ToolActivities>({ ...EFFECT, taskQueue: toolsQueue(host) });

/** Asks a host what it can enforce now. A host that does not answer is `unknown`; only a cancel rejects. */
export const sandboxOf = (host: string): Promise<Sandbox> =>
  askHost(host, { kind: "unknown", reason: noWorkerOf(host) });

export const noWorkerOf = (host: string): string => `No worker answers for the tools of ${host}.`;

/** What the host can enforce now; `silent`: none of its workers answers. Only a cancel rejects. */
export async function askHost<Silent>(host: string, silent: Silent): Promise<Sandbox | Silent> {
  const { describeHost } = proxyActivities<HostActivities>({
    taskQueue: toolsQueue(host),
    scheduleToStartTimeout: HOST_START_TIMEOUT_MS,
    startToCloseTimeout: HOST_RUN_TIMEOUT_MS,
    // A worker that has died may have taken the first task.
    retry: { maximumAttempts: 2 },
  });
  try {
    return (await trusted(describeHost)({ host })).sandbox;
  } catch (error) {
    if (isCancellation(error)) throw error;
    return silent;
  }
}

const ASK_AGAIN_AFTER_MS = 1_000;

/** Calls again until one of our workers has answered: any program that reaches the server can take a task. */
function trusted<I, O>(call: (input: I) => Promise<O>): (input: I) => Promise<O> {
  return async (input) => {
    for (;;) {
      try {
        const answer = await call(input);
        if (!isUnauthenticated(answer)) return answer;
      } catch (error) {
        const cause = error instanceof ActivityFailure ? error.cause : null;
        const isForged = cause instanceof ApplicationFailure && reasonIn(cause) === null;
        if (isCancellation(error) || !isForged) throw error;
      }
      await sleep(ASK_AGAIN_AFTER_MS, { summary: "after an answer of another program" });
    }
  };
}

/**
 * The reason that one of our workers gives for a failure. Anybody can make a failure with a message, but not its details. null:
 * the reason does not come from one of our workers.
 */
export function reasonIn({ details }: ApplicationFailure): string | null {
  const [reason] = details ?? [];
  return typeof reason === "string" ? reason : null;
}
