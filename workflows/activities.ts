/** Owns: the options under which each activity is called (docs/temporal.md has the measurements behind them). */
import {
  ActivityCancellationType,
  proxyActivities,
  proxyLocalActivities,
  type ActivityInterfaceFor,
  type ActivityOptions,
} from "@temporalio/workflow";
import type { ConversationActivities, ToolActivities } from "../activities/contract.ts";
import { toolsQueue } from "./contract.ts";

/** A worker that does not beat for this long is taken for dead. */
const HEARTBEAT_TIMEOUT = "2 seconds";

/** Performed at most once; what is tried again, the machine orders again (architecture, rule 5). */
const EFFECT: ActivityOptions = {
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  startToCloseTimeout: "24 hours",
  // The outcome of what is aborted is awaited: idle is said after the last death, not before.
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { maximumAttempts: 1 },
};

/** Harmless to repeat, so they are, until the database answers. */
const IDEMPOTENT: ActivityOptions = {
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  startToCloseTimeout: "30 seconds",
  retry: { initialInterval: "200 milliseconds", maximumInterval: "1 second" },
};

export const { requestLlm, requestContinuation, executeTool } =
  proxyActivities<ConversationActivities>(EFFECT);
export const { load, commit, messageExists, remove } = proxyActivities<ConversationActivities>(IDEMPOTENT);

/** In the worker that has this workflow, at once: there is nothing to wait for, and nothing to try again. */
export const { stopTools } = proxyLocalActivities<ConversationActivities>({
  startToCloseTimeout: "2 seconds",
  retry: { maximumAttempts: 1 },
});

/** The queue that only workers on this host poll. */
export const toolsOn = (host: string): ActivityInterfaceFor<ToolActivities> =>
  proxyActivities<ToolActivities>({ ...EFFECT, taskQueue: toolsQueue(host) });
