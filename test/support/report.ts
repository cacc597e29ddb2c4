/** Owns: the report of a failed test on its conversation: its state, and the end of its history. */
import { onTestFailed } from "vitest";
import type { TestConversation } from "./conversation.ts";

const EVENTS = 40;

/** Works only inside a test. Concurrent tests cannot be told apart here and get no report. */
export function reportOnFailure(conversation: TestConversation): void {
  try {
    onTestFailed(() => report(conversation));
  } catch {
    // In a concurrent test, or outside of a test.
  }
}

async function report(conversation: TestConversation): Promise<void> {
  const { events } = await conversation.handle.fetchHistory();
  const lines = (events ?? []).slice(-EVENTS).map((event) => {
    const at = new Date(Number(event.eventTime?.seconds ?? 0) * 1000).toISOString().slice(11, 19);
    const kind = Object.entries(event).find(
      ([key, value]) => key.endsWith("Attributes") && value != null,
    )?.[0];
    const name =
      event.activityTaskScheduledEventAttributes?.activityType?.name ??
      event.activityTaskTimedOutEventAttributes?.failure?.timeoutFailureInfo?.timeoutType ??
      event.workflowTaskTimedOutEventAttributes?.timeoutType ??
      event.workflowTaskFailedEventAttributes?.failure?.message ??
      "";
    return `${at} ${kind ?? ""} ${String(name)}`;
  });
  const { state } = (await conversation.stored()).conversation;
  console.log(`conversation ${conversation.id}: ${JSON.stringify(state)}\n${lines.join("\n")}`);
}
