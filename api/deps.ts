/** Owns: the dependencies of the routes; main.ts puts the real ones together. */
import type { Access } from "./access/access.ts";
import type { Database } from "../db/connect.ts";
import type { Models } from "../llm/models.ts";
import type { SpendingLimits } from "../protocol/spending.ts";
import type { Log } from "../observability/log.ts";
import type { ApiMetrics } from "../observability/metrics.ts";
import type { Spans } from "../observability/spans.ts";
import type { StreamChannel } from "./events/combined-streams.ts";
import type { Hub } from "./events/hub.ts";
import type { PageFiles } from "./page-files.ts";
import type { ReportError } from "./problem.ts";
import type { UploadLimits } from "./uploads.ts";
import type { Workflows } from "./workflow.ts";

export type Deps = {
  readonly db: Database;
  readonly hub: Hub;
  /** Between the processes that serve streams. */
  readonly streams: StreamChannel;
  readonly workflows: Workflows;
  /** The models that are known now. */
  readonly models: () => Promise<Models>;
  /** The model's id for a conversation that names none. */
  readonly defaultModel: string;
  /** The answers come from the built-in scripted model. */
  readonly scripted: boolean;
  readonly spendingLimits: SpendingLimits;
  /** The host of a new conversation that names none. */
  readonly toolHost: string;
  /** All hosts on which new conversations may live, `toolHost` first. */
  readonly toolHosts: readonly string[];
  /** The address that the server listens on. */
  readonly host: string;
  readonly access: Access;
  /** The keys of payloads, the first for new ones; none: payloads are not encrypted. */
  readonly payloadKeys: readonly Uint8Array[];
  readonly temporalNamespace: string;
  /** null: the page is not built. */
  readonly page: PageFiles | null;
  /** Aborted when the process ends: open streams end with it. */
  readonly closing: AbortSignal;
  readonly report: ReportError;
  readonly metrics: ApiMetrics;
  readonly log: Log;
  readonly spans: Spans;
  /** Milliseconds between the heartbeats of a stream; 15,000 by default. Tests use less. */
  readonly heartbeatMs?: number;
  /** Override the limits of bodies.ts in tests. */
  readonly uploads?: Partial<UploadLimits>;
};
