/**
 * Owns: a whole system for one test file: its own database and task queues on the run's servers, its own scripted
 * model, workers in this process or in processes of their own. Everything ends with the file.
 */
import { Client, Connection } from "@temporalio/client";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, inject } from "vitest";
import { loadServiceConfig, type ServiceConfig } from "../../config.ts";
import { openDatabase, type Database } from "../../db/connect.ts";
import { listen, type Notifications } from "../../db/notifications.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import type { Sandbox } from "../../machine/conversation.ts";
import { sandboxOfHost } from "../../sandbox/host.ts";
import "./quiet.ts";
import { startWorker, type RunningWorker } from "../../worker.ts";
import { NO_SANDBOX } from "./create-input.ts";
import { freshDatabase } from "./database.ts";

/** Long, because a machine that is busy with other tests is no reason to force anything. */
const SHUTDOWN_LIMIT_MS = 20_000;

export type System = {
  readonly config: ServiceConfig;
  readonly db: Database;
  readonly notifications: Notifications;
  readonly model: ScriptedServer;
  readonly temporal: Client;
  /** An empty directory for conversations. */
  readonly cwd: string;
  /** What the host of that directory can enforce. */
  readonly sandbox: Sandbox;
  /** Starts one more worker in this process. */
  readonly startWorker: () => Promise<RunningWorker>;
  /** Runs when the file is over, last first. */
  readonly defer: (end: () => Promise<unknown>) => void;
};

export type SystemOptions = {
  /** Workers in this process from the beginning; default 1. */
  readonly workers?: number;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * false: this process's workers report no sandbox even if the host has one, so that all conversations are Unrestricted,
   * sub-agents too. A worker process needs `withoutLandlock` for the same.
   */
  readonly hasSandbox?: false;
};

/** For all systems of the file, because a hook that is registered inside a test would never run. */
const ends: (() => Promise<unknown>)[] = [];
const defer = (end: () => Promise<unknown>): void => void ends.unshift(end);
afterAll(async () => {
  for (const end of ends) await end();
});

export async function startSystem(options: SystemOptions = {}): Promise<System> {
  const databaseUrl = await freshDatabase();
  const model = await startScriptedServer();
  defer(() => model.close());
  const id = randomUUID().slice(0, 8);
  const config = loadServiceConfig({
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: inject("temporalAddress"),
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "test-key",
    TASK_QUEUE: `conversations-${id}`,
    TOOL_HOST: `host-${id}`,
    PORT: "0",
    ...options.env,
  });
  const connection = await Connection.connect({ address: config.temporalAddress });
  defer(() => connection.close());
  const db = openDatabase(databaseUrl, { applicationName: "test", max: 5 });
  defer(() => db.close());
  const notifications = listen(databaseUrl);
  defer(() => notifications.close());
  const cwd = await mkdtemp(join(tmpdir(), "bedrock-cwd-"));
  defer(() => rm(cwd, { recursive: true, force: true }));
  const sandbox = options.hasSandbox === false ? NO_SANDBOX : await sandboxOfHost();
  const start = async (): Promise<RunningWorker> => {
    const worker = await startWorker(config, () => Promise.resolve(inject("bundlePath")), {
      shutdownLimit: SHUTDOWN_LIMIT_MS,
      ...(options.hasSandbox === false ? { sandbox: () => Promise.resolve(sandbox) } : {}),
    });
    defer(() => worker.stop());
    return worker;
  };
  for (let n = 0; n < (options.workers ?? 1); n++) await start();
  await notifications.ready;
  return {
    config,
    db,
    notifications,
    model,
    temporal: new Client({ connection }),
    cwd,
    sandbox,
    startWorker: start,
    defer,
  };
}
