/**
 * Owns: what the histories of a conversation's runs say of its times: how long each hand-off of a round takes, what a
 * long gap was, and when a run continued another.
 */
import { Client, Connection } from "@temporalio/client";
import { quantile } from "./stats.ts";

type Event = {
  /** What happened, and of which activity: `activityTaskStarted bash`. */
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** Spans that come less often belong to no round. */
const OFTEN = 20;

export class Histories {
  /** Of all runs, in order. */
  readonly #events: readonly Event[];

  private constructor(events: readonly Event[]) {
    this.#events = events;
  }

  static async read(address: string, conversationId: string): Promise<Histories> {
    const connection = await Connection.connect({ address });
    const client = new Client({ connection });
    const events: Event[] = [];
    let runId: string | undefined;
    for (;;) {
      const handle = client.workflow.getHandle(conversationId, runId);
      const { events: ofRun } = await handle.fetchHistory();
      events.unshift(...eventsOf(ofRun ?? []));
      const before = ofRun?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? "";
      if (before === "") break;
      runId = before;
    }
    await connection.close();
    return new Histories(events);
  }

  /** Median milliseconds of each hand-off within rounds, in the order in which they come. */
  spans(): ReadonlyMap<string, number> {
    const samples = new Map<string, number[]>();
    for (const { name, took } of this.#pairs()) samples.set(name, [...(samples.get(name) ?? []), took]);
    const often = [...samples].filter(([, values]) => values.length > OFTEN);
    return new Map(often.map(([span, values]) => [span, quantile(values, 0.5)]));
  }

  /** When runs continued others, in milliseconds since the epoch. */
  continuations(): readonly number[] {
    return this.#events.filter(({ name }) => name === "workflowExecutionContinuedAsNew").map(({ at }) => at);
  }

  /** @param at milliseconds since the epoch */
  eventsUntil(at: number): number {
    return this.#events.filter((event) => event.at <= at).length;
  }

  /** The longest hand-off in a time, with its milliseconds; null: nothing happened in it. */
  longestIn(from: number, to: number): string | null {
    const [longest] = this.#pairs()
      .filter(({ at }) => at > from && at <= to)
      .sort((a, b) => b.took - a.took);
    return longest === undefined ? null : `${Math.round(longest.took)} ms ${longest.name}`;
  }

  #pairs(): { readonly name: string; readonly at: number; readonly took: number }[] {
    return this.#events.slice(1).map(({ name, at }, n) => {
      const before = this.#events[n] ?? { name: "", at };
      return { name: `${before.name} → ${name}`, at, took: at - before.at };
    });
  }
}

type Raw = NonNullable<
  Awaited<ReturnType<ReturnType<Client["workflow"]["getHandle"]>["fetchHistory"]>>["events"]
>;

function eventsOf(raw: Raw): readonly Event[] {
  const activities = new Map<string, string>();
  return raw.map((event) => {
    const at = Number(event.eventTime?.seconds ?? 0) * 1_000 + (event.eventTime?.nanos ?? 0) / 1e6;
    const kind = Object.entries(event).find(([key, value]) => key.endsWith("Attributes") && value != null);
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled != null) activities.set(String(event.eventId), scheduled.activityType?.name ?? "");
    const started = event.activityTaskStartedEventAttributes ?? event.activityTaskCompletedEventAttributes;
    const id = String(started?.scheduledEventId ?? event.eventId);
    const name = kind?.[0].replace("EventAttributes", "") ?? "";
    return { name: `${name} ${activities.get(id) ?? ""}`.trim(), at };
  });
}
