/**
 * Owns: the API as a process. It reads its settings, prints `api ready http://…` on standard output, and ends on
 * SIGTERM or SIGINT. A second signal ends it at once.
 */
import { ConfigError, loadServiceConfig, type Env, type ServiceConfig } from "../config.ts";
import { openDatabase } from "../db/connect.ts";
import { listen } from "../db/notifications.ts";
import { sendOrder } from "../db/orders.ts";
import { isAtLeast } from "../protocol/access.ts";
import { createAccess } from "./access/access.ts";
import { createApp } from "./app.ts";
import { createHub } from "./events/hub.ts";
import { sweepImages } from "./images.ts";
import { createMetrics } from "./metrics.ts";
import { createModelRegistry } from "./models.ts";
import { readPage } from "./page-files.ts";
import type { ReportError } from "./problem.ts";
import { serve } from "./serve.ts";
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
  const report: ReportError = (id, error) => console.error(`api error ${id}:`, error);
  const access = createAccess({ ...config, say: (line) => console.log(line), closing: closing.signal });
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
    metrics: createMetrics(),
    report,
  });
  sweepImages(db, closing.signal, (error) => console.error("api: images could not be swept:", error));
  const listening = await serve((request, env) => app.fetch(request, env), config, report);

  const stop = async () => {
    process.once("SIGTERM", () => process.exit(1)).once("SIGINT", () => process.exit(1));
    closing.abort();
    await listening.close(GRACE_MS);
    // Temporal's client stays open: a call that it retries at that moment would throw out of a timer.
    await Promise.allSettled([notifications.close(), db.close()]);
    process.exit(0);
  };
  process.once("SIGTERM", () => void stop()).once("SIGINT", () => void stop());
  console.log(`api ready ${listening.url}`);
  if (!someoneMayApprove(config))
    console.log(
      "Nobody may approve here: set API_TOKEN, API_TOKENS_FILE or ANONYMOUS_ROLE (docs/security.md).",
    );
}

const someoneMayApprove = ({ ownerTokenDigest, apiTokensFile, anonymousRole }: ServiceConfig): boolean =>
  ownerTokenDigest !== null ||
  apiTokensFile !== null ||
  (anonymousRole !== null && isAtLeast(anonymousRole, "approve"));
