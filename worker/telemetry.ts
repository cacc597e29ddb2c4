/** Owns: what a worker records, put together from its settings: metrics, spans, the log of Temporal's SDK. */
import {
  DefaultLogger,
  makeTelemetryFilterString,
  type LogEntry,
  type RuntimeOptions,
} from "@temporalio/worker";
import { deleteOldSpans, storeSpans } from "../db/spans.ts";
import { readTurn } from "../db/turns.ts";
import type { Database } from "../db/connect.ts";
import type { Log } from "../observability/log.ts";
import type { WorkerMetrics } from "../observability/metrics.ts";
import { otlpExporter, type Collector } from "../observability/otlp.ts";
import { createSpans } from "../observability/spans.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import { TurnEnds } from "../observability/turn-ends.ts";

export type TelemetryOptions = {
  readonly metrics: WorkerMetrics;
  readonly traceDays: number;
  readonly collector: Collector | null;
};

/** Milliseconds between two searches for old spans. */
const SWEEP_MS = 60 * 60 * 1_000;

export async function startTelemetry(
  db: Database,
  { metrics, traceDays, collector }: TelemetryOptions,
): Promise<Telemetry & { readonly stop: () => Promise<void> }> {
  const spans = createSpans({
    service: "bedrock-worker",
    store: traceDays === 0 ? null : (records) => storeSpans(db, records),
    exporter: collector === null ? null : await otlpExporter(collector),
    dropped: metrics.countDroppedSpans,
  });
  const turnEnds = new TurnEnds({ read: (id, cycle) => readTurn(db, id, cycle), metrics, spans });
  const sweep = (): void => void deleteOldSpans(db, traceDays).catch(() => undefined);
  const timer = setInterval(sweep, SWEEP_MS).unref();
  return {
    ...{ metrics, spans, turnEnds },
    async stop() {
      clearInterval(timer);
      turnEnds.stop();
      await spans.close();
    },
  };
}

/** Fields of the SDK's events by their names in our log; others stay out of it. */
const FIELDS: Readonly<Record<string, string>> = {
  workflowId: "conversation",
  runId: "run",
  activityType: "activity",
  activityId: "activityId",
  attempt: "attempt",
  taskQueue: "queue",
  sdkComponent: "component",
};

/** What Temporal's SDK and workflows say goes to our log: warnings and errors, and all of it at the level `debug`. */
export function sdkLogging(log: Log): Pick<RuntimeOptions, "logger" | "telemetryOptions"> {
  const isVerbose = log.isLevelEnabled("debug");
  return {
    logger: new DefaultLogger(isVerbose ? "DEBUG" : "WARN", (entry) => tell(log, entry)),
    telemetryOptions: {
      logging: {
        forward: {},
        filter: makeTelemetryFilterString({ core: isVerbose ? "INFO" : "WARN", other: "ERROR" }),
      },
    },
  };
}

function tell(log: Log, { level, message, meta = {} }: LogEntry): void {
  // The tools' worker has no workflows on purpose.
  if (message.startsWith("No workflows registered")) return;
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(meta)) {
    const ours = FIELDS[name];
    if (ours !== undefined) fields[ours] = value;
    if (name === "error") fields["err"] = value;
  }
  switch (level) {
    case "TRACE":
      return log.trace(fields, message);
    case "DEBUG":
      return log.debug(fields, message);
    case "INFO":
      return log.info(fields, message);
    case "WARN":
      return log.warn(fields, message);
    case "ERROR":
      return log.error(fields, message);
  }
}
