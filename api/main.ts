/**
 * Owns: the API as a process. It reads its settings, prints `api ready http://…` on standard output, and ends on
 * SIGTERM or SIGINT. A second signal ends it at once.
 */
import {
  ConfigError,
  formatOf,
  loadServiceConfig,
  secretsOf,
  type Env,
  type ServiceConfig,
} from "../config.ts";
import { readBacklog } from "../db/backlog.ts";
import { openDatabase } from "../db/connect.ts";
import { listen } from "../db/notifications.ts";
import { sendOrder } from "../db/orders.ts";
import { isAtLeast } from "../protocol/access.ts";
import { createAccess } from "./access/access.ts";
import { storeSpans } from "../db/spans.ts";
import { createLog } from "../observability/log.ts";
import { createApiMetrics } from "../observability/metrics.ts";
import { otlpExporter } from "../observability/otlp.ts";
import { createSpans } from "../observability/spans.ts";
import { createApp } from "./app.ts";
import { createHub } from "./events/hub.ts";
import { sweepImages } from "./images.ts";
import { createModelRegistry } from "./models.ts";
import { readPage } from "./page-files.ts";
import type { ReportError } from "./problem.ts";
import { serve } from "./serve.ts";
import { withTimeout } from "./with-timeout.ts";
import { connectWorkflows } from "./workflow.ts";

/** Milliseconds for responses that are under way when the process ends. */
const GRACE_MS = 3_000;

export async function main(env: Env): Promise<void> {
  try {
    await run(loadServiceConfig(env));
  } catch (error) {
    console.error(error instanceof ConfigError ? error.message : error);
    process.exit(1);
  }
}

async function run(config: ServiceConfig): Promise<void> {
  const db = openDatabase(config.databaseUrl, { applicationName: "bedrock api" });
  const notifications = listen(config.databaseUrl);
  const workflows = connectWorkflows({
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    taskQueue: config.taskQueue,
    payloadKeys: config.payloadKeys,
  });
  const closing = new AbortController();
  const log = createLog({
    ...{ service: "api", level: config.logLevel, format: formatOf(config) },
    secrets: secretsOf(config),
  });
  const report: ReportError = (request, error) => log.error({ request, err: error }, "api error");
  const metrics = createApiMetrics({ backlog: recently(() => readBacklog(db)), isProcess: true });
  const spans = createSpans({
    service: "bedrock-api",
    store: config.traceDays === 0 ? null : (records) => storeSpans(db, records),
    exporter: config.collector === null ? null : await otlpExporter(config.collector),
    dropped: metrics.countDroppedSpans,
  });
  const access = createAccess({ ...config, say: (line) => log.warn(line), closing: closing.signal });
  const app = createApp({
    db,
    workflows,
    hub: createHub(notifications, (conversationId) => sendOrder(db, { kind: "tell_again", conversationId })),
    streams: { send: (order) => sendOrder(db, order), onOrder: notifications.onOrder },
    models: createModelRegistry(db, config),
    defaultModel: config.model,
    scripted: config.scriptedModel,
    spendingLimits: config.spendingLimits,
    toolHost: config.toolHost,
    toolHosts: config.toolHosts,
    host: config.host,
    access,
    payloadKeys: config.payloadKeys,
    temporalNamespace: config.temporalNamespace,
    page: readPage(),
    closing: closing.signal,
    ...{ metrics, log, spans },
    report,
  });
  sweepImages(db, closing.signal, (error) => log.error({ err: error }, "images could not be swept"));
  const listening = await serve((request, env) => app.fetch(request, env), config, report);

  const stop = async () => {
    process.once("SIGTERM", () => process.exit(1)).once("SIGINT", () => process.exit(1));
    closing.abort();
    await listening.close(GRACE_MS);
    // Temporal's client stays open: a call that it retries at that moment would throw out of a timer.
    await spans.close();
    await Promise.allSettled([notifications.close(), db.close()]);
    process.exit(0);
  };
  process.once("SIGTERM", () => void stop()).once("SIGINT", () => void stop());
  log.info(`api ready ${listening.url}`);
  if (!someoneMayApprove(config))
    log.warn("Nobody may approve here: set API_TOKEN, API_TOKENS_FILE or ANONYMOUS_ROLE (docs/security.md).");
}

/** Milliseconds for which an answer of the database serves all scrapes. */
const FRESH_MS = 5_000;
/** Milliseconds for which a scrape waits for the database. */
const SCRAPE_MS = 1_000;

/** Reads at most every few seconds; null where it cannot be read in time. */
function recently<T>(read: () => Promise<T>): () => Promise<T | null> {
  let last: { readonly at: number; readonly value: Promise<T | null> } | null = null;
  return () => {
    if (last === null || performance.now() - last.at > FRESH_MS)
      last = { at: performance.now(), value: withTimeout(read(), SCRAPE_MS, null).catch(() => null) };
    return last.value;
  };
}

const someoneMayApprove = ({ ownerTokenDigest, apiTokensFile, anonymousRole }: ServiceConfig): boolean =>
  ownerTokenDigest !== null ||
  apiTokensFile !== null ||
  (anonymousRole !== null && isAtLeast(anonymousRole, "approve"));
