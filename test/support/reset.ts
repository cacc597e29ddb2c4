/** Owns: an operator's reset of a conversation's workflow, as the Temporal Web UI and CLI do it. */
import { randomUUID } from "node:crypto";
import type { TestConversation } from "./conversation.ts";

type HistoryEvent = NonNullable<
  Awaited<ReturnType<TestConversation["handle"]["fetchHistory"]>>["events"]
>[number];

/** By default the server reapplies the signals and updates after that task to the new run. */
type Reapply = "reapply" | "forget";
type Reset = Parameters<
  TestConversation["system"]["temporal"]["workflowService"]["resetWorkflowExecution"]
>[0];
/** Signals and updates, by their numbers in temporal.api.enums.v1.ResetReapplyExcludeType, which no package exports. */
const EVERYTHING = [1, 2] as unknown as NonNullable<Reset["resetReapplyExcludeTypes"]>;

/** Resets the workflow to one of its completed workflow tasks. `all` is its history. */
export async function resetWorkflow(
  { system, handle, id }: TestConversation,
  choose: (tasks: readonly HistoryEvent[], all: readonly HistoryEvent[]) => HistoryEvent | undefined,
  reapply: Reapply = "reapply",
): Promise<void> {
  const all = (await handle.fetchHistory()).events ?? [];
  const tasks = all.filter((event) => event.workflowTaskCompletedEventAttributes != null);
  const task = choose(tasks, all);
  if (task?.eventId == null) throw new Error("there is no such workflow task");
  await system.temporal.connection.workflowService.resetWorkflowExecution({
    namespace: system.config.temporalNamespace,
    workflowExecution: { workflowId: id },
    reason: "test",
    resetReapplyExcludeTypes: reapply === "reapply" ? [] : EVERYTHING,
    requestId: randomUUID(),
    workflowTaskFinishEventId: task.eventId,
  });
}
