/** Owns: an operator's reset of a conversation's workflow, as the Temporal Web UI and CLI do it. */
import { randomUUID } from "node:crypto";
import type { TestConversation } from "./conversation.ts";

type HistoryEvent = NonNullable<
  Awaited<ReturnType<TestConversation["handle"]["fetchHistory"]>>["events"]
>[number];

/** Rewinds it to one of its completed workflow tasks; `all` is its history. */
export async function resetWorkflow(
  { system, handle, id }: TestConversation,
  choose: (tasks: readonly HistoryEvent[], all: readonly HistoryEvent[]) => HistoryEvent | undefined,
): Promise<void> {
  const all = (await handle.fetchHistory()).events ?? [];
  const tasks = all.filter((event) => event.workflowTaskCompletedEventAttributes != null);
  const task = choose(tasks, all);
  if (task?.eventId == null) throw new Error("there is no such workflow task");
  await system.temporal.connection.workflowService.resetWorkflowExecution({
    namespace: system.config.temporalNamespace,
    workflowExecution: { workflowId: id },
    reason: "test",
    requestId: randomUUID(),
    workflowTaskFinishEventId: task.eventId,
  });
}
