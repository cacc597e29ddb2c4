/** Owns: what a worker's activities record, in one piece. */
import type { WorkerMetrics } from "./metrics.ts";
import type { Spans } from "./spans.ts";
import type { TurnEnds } from "./turn-ends.ts";

export type Telemetry = {
  readonly metrics: WorkerMetrics;
  readonly spans: Spans;
  readonly turnEnds: TurnEnds;
};
