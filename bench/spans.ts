/** Shows where the time of a tool round goes, read from the times in the workflow's own history. */
import { Client, Connection } from "@temporalio/client";
import { quantile } from "./stats.ts";

/** Median milliseconds of each hand-off within the rounds of a conversation, in the order in which they come. */
export async function spans(address: string, conversationId: string): Promise<ReadonlyMap<string, number>> {
  const connection = await Connection.connect({ address });
  const client = new Client({ connection });
  const { events } = await client.workflow.getHandle(conversationId).fetchHistory();
  await connection.close();
  const samples = new Map<string, number[]>();
  const activities = new Map<string, string>();
  let last: { readonly name: string; readonly at: number } | null = null;
  for (const event of events ?? []) {
    const at = Number(event.eventTime?.seconds ?? 0) * 1_000 + (event.eventTime?.nanos ?? 0) / 1e6;
    const kind = Object.entries(event).find(([key, value]) => key.endsWith("Attributes") && value != null);
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled != null) activities.set(String(event.eventId), scheduled.activityType?.name ?? "");
    const { activityTaskStartedEventAttributes: started, activityTaskCompletedEventAttributes: completed } =
      event;
    const id = String(started?.scheduledEventId ?? completed?.scheduledEventId ?? event.eventId);
    const name = `${kind?.[0].replace("EventAttributes", "") ?? ""} ${activities.get(id) ?? ""}`.trim();
    if (last !== null) {
      const span = `${last.name} → ${name}`;
      samples.set(span, [...(samples.get(span) ?? []), at - last.at]);
    }
    last = { name, at };
  }
  const often = [...samples].filter(([, values]) => values.length > 20);
  return new Map(often.map(([span, values]) => [span, quantile(values, 0.5)]));
}
