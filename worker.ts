/**
 * Owns: the worker process: it polls for conversations, for their requests, and for the tools of its host, as its roles
 * say. Stateless: any number may run, and any may die (docs/architecture.md, docs/operations.md).
 */
import {
  NativeConnection,
  Runtime,
  Worker,
  type InjectedSinks,
  type WorkerOptions,
} from "@temporalio/worker";
import type { WorkerDeploymentVersion } from "@temporalio/common";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { MessageCache } from "./activities/message-cache.ts";
import { hostActivities } from "./activities/host.ts";
import { LiveTexts } from "./activities/live-texts.ts";
import { ModelRegistry } from "./activities/model-registry.ts";
import { RequestImages } from "./activities/request-images.ts";
import { requestActivities } from "./activities/requests.ts";
import { RunningTools } from "./activities/running-tools.ts";
import { refuseUnauthenticated } from "./activities/refuse-unauthenticated.ts";
import { rowActivities } from "./activities/rows.ts";
import { ownTools, toolActivities, toolStops } from "./activities/tools.ts";
import {
  ConfigError,
  formatOf,
  loadServiceConfig,
  secretsOf,
  WORKER_ROLES,
  type Env,
  type ServiceConfig,
} from "./config.ts";
import { openDatabase, type Database } from "./db/connect.ts";
import { listenForOrders } from "./db/orders.ts";
import { createClient } from "./llm/client.ts";
import { DEFAULT_LIMITS } from "./machine/context.ts";
import { dataConverterOf } from "./protocol/payload-encryption.ts";
import { createLog, type Log } from "./observability/log.ts";
import { createWorkerMetrics, type WorkerMetrics } from "./observability/metrics.ts";
import { freeLoopbackPort, serveMetrics } from "./observability/metrics-server.ts";
import type { Telemetry } from "./observability/telemetry.ts";
import { buildOfSources, ensureWorkflowBundle } from "./worker/bundle.ts";
import { LateRuns } from "./worker/late-runs.ts";
import { sandboxOfHost, type Sandbox } from "./sandbox/host.ts";
import type { WorkflowSinks } from "./protocol/sinks.ts";
import { STICKY_TIMEOUT_MS } from "./protocol/timing.ts";
import { toolsQueue } from "./protocol/workflow.ts";
import { describeTools } from "./tools/registry.ts";
import { ensureSearchAttributes, SearchAttributeError } from "./worker/search-attributes.ts";
import { sdkLogging, startTelemetry } from "./worker/telemetry.ts";

/** Milliseconds for what is interrupted, after the drain, to end. */
const SHUTDOWN_LIMIT_MS = 2_000;
/** Workflows kept in memory, about 220 KB each. Any other workflow is replayed when it is needed. */
const CACHED_WORKFLOWS = 1_000;
/**
 * Each task has 2 s from when a worker takes it. With many replays at once, after a start, none would be done in time.
 */
const CONCURRENT_WORKFLOW_TASKS = 4;
/** One is busy all the time when fifty conversations work; with two they do a tenth more. */
const WORKFLOW_THREADS = 2;
const CONCURRENT_ACTIVITIES = 200;
/** Few, because each poll of a frozen worker may take a task, which then waits for its time-out. */
const POLLS = 2;
const DATABASE_CONNECTIONS = 10;

export type StartOptions = {
  /** Milliseconds after the drain at which a stop is forced, which fails `done`. */
  readonly shutdownLimit?: number;
  /** What the host can enforce, for those who ask. */
  readonly sandbox?: () => Promise<Sandbox>;
  readonly metrics?: WorkerMetrics;
  readonly log?: Log;
};

export type RunningWorker = {
  /** Settles when the worker has ended; rejects when it failed. */
  readonly done: Promise<void>;
  readonly stop: () => Promise<void>;
  /** As Temporal's command line names it; null: without Worker Versioning. */
  readonly version: string | null;
};

/**
 * Connects and polls, for each of the worker's roles.
 *
 * @param bundlePath of the workflows (worker/bundle.ts); asked for only where they run
 */
export async function startWorker(
  config: ServiceConfig,
  bundlePath: () => Promise<string>,
  {
    shutdownLimit = SHUTDOWN_LIMIT_MS,
    sandbox = sandboxOfHost,
    metrics = createWorkerMetrics(),
    log = logOf(config),
  }: StartOptions = {},
): Promise<RunningWorker> {
  const { toolHost, taskQueue, workerRoles: roles } = config;
  const drain = config.workerDrainSeconds * 1_000;
  const connection = await NativeConnection.connect({
    address: config.temporalAddress,
    // Compression takes a twelfth of the server's work, and the messages are a few kilobytes to a server nearby.
    grpcCompression: { codec: "none" },
  });
  if (roles.has("conversations")) await ensureSearchAttributes(connection, config.temporalNamespace);
  const db = openDatabase(config.databaseUrl, {
    applicationName: "bedrock worker",
    max: DATABASE_CONNECTIONS,
  });
  const liveTexts = new LiveTexts();
  const running = new RunningTools();
  const hidden = [await realpath(config.dataDir).catch(() => config.dataDir)];
  const telemetry = await startTelemetry(db, { ...config, metrics });
  const tools = toolActivities({ db, telemetry, hidden, running, liveTexts });
  const orders = listenForOrders(
    config.databaseUrl,
    (order) => {
      if (order.kind === "stop_tools") running.stop(order.tools);
      if (order.kind === "tell_again") liveTexts.tellAgain(order.conversationId);
    },
    () => liveTexts.tellAllAgain(),
  );
  const requests = roles.has("requests") ? startRequests(config, { db, telemetry, liveTexts, log }) : null;
  const common = {
    connection,
    namespace: config.temporalNamespace,
    dataConverter: dataConverterOf(config.payloadKeys),
    interceptors: { activity: [refuseUnauthenticated] },
    maxConcurrentActivityTaskExecutions: CONCURRENT_ACTIVITIES,
    maxConcurrentActivityTaskPolls: POLLS,
    // What runs longer is interrupted, and the model is told so.
    shutdownGraceTime: drain,
    shutdownForceTime: drain + shutdownLimit,
  } satisfies Partial<WorkerOptions>;
  const version = await versionOf(config);
  const polled: WorkerOptions[] = [];
  if (roles.has("conversations") || requests !== null)
    polled.push({
      ...common,
      taskQueue,
      ...versionOptions(version),
      // Without requests only the local activity: nothing that is on the queue may be taken and not be done.
      enableNonLocalActivities: requests !== null,
      activities: {
        ...toolStops({ db, running }),
        ...requests?.activities,
        ...ownTools(roles.has("tools") ? toolHost : null, tools),
      },
      ...(roles.has("conversations") ? workflowOptions(await bundlePath(), connection) : {}),
    });
  if (roles.has("tools"))
    polled.push({
      ...common,
      taskQueue: toolsQueue(toolHost),
      activities: { ...tools, ...hostActivities(toolHost, sandbox) },
    });
  const workers = await Promise.all(polled.map((each) => Worker.create(each)));
  // The models' limits must be known before the worker polls: conversations are counted by them.
  await requests?.learned;
  const shutdown = (): void => {
    for (const worker of workers) if (worker.getState() === "RUNNING") worker.shutdown();
  };
  // If one worker ends, it stops the other: a process with only one of them would look alive but could not work.
  const done = Promise.all(workers.map((worker) => worker.run().finally(shutdown)))
    .finally(() => requests?.stop())
    .finally(() => orders.close())
    .finally(() => telemetry.stop())
    .finally(() => db.close())
    .finally(() => connection.close())
    .then(() => undefined);
  return { done, stop: () => (shutdown(), done), version: version && nameOf(version) };
}

type RequestParts = {
  readonly db: Database;
  readonly telemetry: Telemetry;
  readonly liveTexts: LiveTexts;
  readonly log: Log;
};

/** What commits and asks the model, and how its registry of models is ended. */
function startRequests(config: ServiceConfig, { db, telemetry, liveTexts, log }: RequestParts) {
  const client = createClient({ apiKey: config.anthropicApiKey ?? "none", baseURL: config.anthropicBaseUrl });
  const history = new MessageCache(db);
  const models = new ModelRegistry({
    ...{ db, client, file: config.models, scripted: config.scriptedModel },
    warn: (sentence) => log.warn(sentence),
  });
  const learned = models.start();
  const limits = { ...DEFAULT_LIMITS, subAgentTimeoutSeconds: config.subAgentTimeoutSeconds };
  const toolsFor = describeTools(limits);
  const requests = {
    ...{ db, telemetry, history, client, models, toolsFor },
    requestImages: new RequestImages(db),
    liveTexts,
    spendingLimits: config.spendingLimits,
    stallMs: config.llmStallMs,
  };
  return {
    activities: {
      ...rowActivities({
        ...{ db, telemetry, history, models, toolsFor, limits },
        hidesTitles: !config.titlesInTemporal,
      }),
      ...requestActivities(requests),
    },
    learned,
    stop: () => models.stop(),
  };
}

/** null: without Worker Versioning. */
async function versionOf({ workerVersion }: ServiceConfig): Promise<WorkerDeploymentVersion | null> {
  if (workerVersion === null) return null;
  const { deployment: deploymentName, build } = workerVersion;
  return { deploymentName, buildId: build ?? (await buildOfSources()) };
}

const nameOf = ({ deploymentName, buildId }: WorkerDeploymentVersion): string =>
  `${deploymentName}:${buildId}`;

/** Tools have no version: the workers of a host take calls of all versions of conversations. */
const versionOptions = (version: WorkerDeploymentVersion | null): Partial<WorkerOptions> =>
  version === null
    ? {}
    : {
        workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: "PINNED" },
      };

function workflowOptions(codePath: string, connection: NativeConnection) {
  const lateRuns = new LateRuns(connection);
  const sinks: InjectedSinks<WorkflowSinks> = {
    runs: { began: { fn: (run, at) => lateRuns.take(run, at) } },
  };
  return {
    workflowBundle: { codePath },
    sinks,
    maxCachedWorkflows: CACHED_WORKFLOWS,
    workflowThreadPoolSize: WORKFLOW_THREADS,
    maxConcurrentWorkflowTaskPolls: POLLS,
    maxConcurrentWorkflowTaskExecutions: CONCURRENT_WORKFLOW_TASKS,
    // The conversations of a worker that died must not wait for it (docs/temporal.md).
    stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT_MS,
  } satisfies Partial<WorkerOptions>;
}

/** The process: from its settings to its end. */
export async function main(env: Env): Promise<void> {
  try {
    await work(loadServiceConfig(env));
  } catch (error) {
    // The person can correct a bad setting. Any other error is a defect and needs its stack.
    const isSetting = error instanceof ConfigError || error instanceof SearchAttributeError;
    console.error(isSetting ? error.message : error);
    process.exitCode = 1;
  }
}

async function work(config: ServiceConfig): Promise<void> {
  const log = logOf(config);
  const metrics = createWorkerMetrics({ isProcess: true });
  const sdk = config.metrics === null ? null : { host: "127.0.0.1", port: await freeLoopbackPort() };
  const logging = sdkLogging(log);
  Runtime.install({
    ...logging,
    telemetryOptions: {
      ...logging.telemetryOptions,
      ...(sdk === null
        ? {}
        : {
            metrics: { prometheus: { bindAddress: `${sdk.host}:${sdk.port}`, useSecondsForDurations: true } },
          }),
    },
    shutdownSignals: [],
  });
  const served = config.metrics === null ? null : await serveMetrics(config.metrics, metrics, sdk);
  if (served !== null) log.info(`metrics ${served.url}`);
  const bundle = () => ensureWorkflowBundle(join(config.dataDir, "cache"), (line) => log.info(line));
  const worker = await startWorker(config, bundle, { metrics, log });
  process.once("SIGTERM", () => void worker.stop());
  process.once("SIGINT", () => void worker.stop());
  log.info(`worker ready: ${sayRoles(config)}${worker.version === null ? "" : `; version ${worker.version}`}`);
  // Activities that need the sandbox wait for the same probe; polling does not wait for it.
  if (config.workerRoles.has("tools")) await warnOfSandbox(log);
  try {
    await worker.done;
    await served?.close();
  } catch (error) {
    log.fatal({ err: error }, "the worker ended");
    // An activity still runs that could not be stopped. A normal exit would wait for its file system calls, even on a
    // disk that does not answer, and heartbeats for the activity would continue meanwhile.
    process.kill(process.pid, "SIGKILL");
  }
}

const logOf = (config: ServiceConfig): Log =>
  createLog({
    ...{ service: "worker", level: config.logLevel, format: formatOf(config) },
    secrets: secretsOf(config),
  });

const sayRoles = ({ workerRoles, toolHost }: ServiceConfig): string =>
  WORKER_ROLES.filter((role) => workerRoles.has(role))
    .map((role) => (role === "tools" ? `tools of ${toolHost}` : role))
    .join(", ");

async function warnOfSandbox(log: Log): Promise<void> {
  const sandbox = await sandboxOfHost();
  if (sandbox.kind === "unavailable") log.warn(`Every conversation is Unrestricted here. ${sandbox.reason}`);
  if (sandbox.kind === "unknown") log.warn(`No conversation can be created here. ${sandbox.reason}`);
}
