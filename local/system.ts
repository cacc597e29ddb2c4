/**
 * Owns: the order in which the system of `npm start` comes up and goes down (REQ-BED-007).
 * Not here: signals and exit codes (main.ts), the single processes (children.ts, process-manager.ts).
 */
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { createAccess } from "../api/access/access.ts";
import { serveUi } from "../api/temporal-ui/serve.ts";
import type { Listening } from "../api/serve.ts";
import type { Config } from "../config.ts";
import { migrate } from "../db/migrate.ts";
import { dataConverterOf } from "../protocol/payload-encryption.ts";
import {
  apiProcess,
  apiUrl,
  scriptedProcess,
  STOP_ORDER,
  temporalProcess,
  workerProcess,
} from "./children.ts";
import { announceUrl, dataFolders, makeFolders, takeDataLock } from "./data-dir.ts";
import type { Lock } from "./lock.ts";
import { freePort, isFree, rememberedPorts } from "./ports.ts";
import { keepPostgres, type KeptPostgres } from "./keep-postgres.ts";
import { createProcessManager, stopLeftovers } from "./process-manager.ts";
import { checkMachine } from "./machine.ts";
import { withProgress, type Report } from "./progress.ts";
import { areNewPayloadKeys, newPayloadKey, rememberPayloadKey } from "./payload-key.ts";
import { sendRestarted, stillAtWork, type Announced } from "./restart.ts";
import { sentenceOf, StartError } from "./start-error.ts";
import { ensureTemporalBinary } from "./temporal/find.ts";
import { waitForTemporal } from "./temporal/server.ts";
import { codecOf, hiddenAddress, UI_HOST } from "./temporal/hidden-ui.ts";

export type System = {
  /**
   * Starts everything and prints the addresses.
   *
   * @returns the address at which requests are answered.
   * @throws StartError
   */
  start(): Promise<string>;
  /** Ends everything that was started, in order; within 10 seconds. */
  stop(): Promise<void>;
  /** Ends everything at once. */
  kill(): void;
};

/** @param say prints a line for the user. */
export function createSystem(given: Config, say: (line: string) => void): System {
  const folders = dataFolders(given.dataDir);
  const processes = createProcessManager({ ...folders, stopOrder: STOP_ORDER, say });
  const interrupted = new AbortController();
  let postgres: KeptPostgres | null = null;
  let ui: Listening | null = null;
  let lock: Lock | null = null;

  const step = <T>(what: string, work: (report: Report) => Promise<T>): Promise<T> => {
    interrupted.signal.throwIfAborted();
    return withProgress(what, { write: say }, work);
  };

  /** A start that fails interrupts the others. The error is thrown after all of them have come to an end. */
  const together = async <T extends readonly Promise<unknown>[]>(
    starts: readonly [...T],
  ): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> => {
    for (const start of starts) start.catch((error: unknown) => interrupted.abort(error));
    await Promise.allSettled(starts);
    interrupted.signal.throwIfAborted();
    return Promise.all(starts);
  };

  const startPostgres = async (): Promise<string> => {
    if (given.databaseUrl !== null) return given.databaseUrl;
    const kept = keepPostgres(given.dataDir, say);
    postgres = kept;
    return step("Postgres", (report) => kept.start(report));
  };

  const startTemporal = async (payloadKeys: readonly Uint8Array[]): Promise<string> => {
    if (given.temporalAddress !== null) {
      const address = given.temporalAddress;
      const namespace = given.temporalNamespace;
      await step(`Temporal at ${address}`, () =>
        waitForTemporal(address, { namespace, within: 15_000, signal: interrupted.signal }),
      );
      if (given.temporalUi) say("Warning: TEMPORAL_UI does nothing where TEMPORAL_ADDRESS names the server.");
      return address;
    }
    const binary = await step("Temporal server", (onProgress) =>
      ensureTemporalBinary({ onProgress, signal: interrupted.signal }),
    );
    if (binary.warning !== null) say(`Warning: ${binary.warning}`);
    const ports = await rememberedPorts(join(folders.runDir, "ports.json"), ["temporal", "temporalUi"]);
    const behind = given.temporalUi ? await hiddenAddress() : null;
    const spec = temporalProcess({
      binary: binary.path,
      dbFile: join(folders.temporalDir, "temporal.db"),
      namespace: given.temporalNamespace,
      port: ports.temporal,
      ui: behind === null ? null : { ...behind, codec: codecOf(ports.temporalUi) },
    });
    await step("Temporal", () => processes.start(spec));
    if (behind !== null) {
      const access = createAccess({ ...given, say, closing: interrupted.signal });
      const { temporalNamespace } = given;
      ui = await serveUi({
        behind: `http://${behind.ip}:${behind.port}`,
        ...{ host: UI_HOST, port: ports.temporalUi },
        ...{ access, payloadKeys, temporalNamespace },
        report: (id, error) => say(`Temporal Web UI: error ${id}: ${sentenceOf(error)}`),
      });
    }
    return `127.0.0.1:${ports.temporal}`;
  };

  /** The address of the model, null for the provider's own. */
  const startModel = async (): Promise<string | null> => {
    if (!given.scriptedModel) return given.anthropicBaseUrl;
    // The model keeps this port when it is restarted; nothing outside has to know it.
    const port = await freePort();
    await step("Scripted model", () => processes.start(scriptedProcess(port)));
    return `http://127.0.0.1:${port}`;
  };

  /** With servers of one's own other hosts need the key, too: there it is given, or there is none. */
  const makesKey = given.payloadKeys.length === 0 && given.temporalAddress === null;

  const announceRestart = async (
    address: string,
    databaseUrl: string,
    keys: readonly Uint8Array[],
  ): Promise<Announced> => {
    const connection = await Connection.connect({ address });
    try {
      const namespace = given.temporalNamespace;
      const client = new Client({ connection, namespace, dataConverter: dataConverterOf(keys) });
      const { restartPolicy: policy, taskQueue } = given;
      const anew = makesKey || areNewPayloadKeys(given.dataDir, keys);
      const announced = await step("Open conversations", (onProgress) =>
        sendRestarted({ client, databaseUrl, taskQueue, policy, anew, onProgress }),
      );
      rememberPayloadKey(given.dataDir, keys);
      return announced;
    } finally {
      await connection.close();
    }
  };

  return {
    async start() {
      checkMachine();
      makeFolders(folders);
      const { signal } = interrupted;
      lock = await step("Another start", (report) => takeDataLock(folders, { report, signal }));
      announceUrl(folders, null);
      await stopLeftovers({ ...folders, stopOrder: STOP_ORDER, say });
      const keys = makesKey ? [newPayloadKey(given.dataDir)] : given.payloadKeys;
      const config = { ...given, payloadKeys: keys, port: await choosePort(given) };

      const [databaseUrl, temporalAddress, modelUrl] = await together([
        startPostgres(),
        startTemporal(keys),
        startModel(),
      ]);
      await step("Database schema", (report) => migrate(databaseUrl, report)).catch((error: unknown) => {
        if (given.databaseUrl === null || signal.aborted) throw error;
        throw new StartError(
          `DATABASE_URL cannot be used: ${sentenceOf(error)}. Start it, or correct the address.`,
        );
      });
      const { atRest } = await announceRestart(temporalAddress, databaseUrl, keys);

      const services = { databaseUrl, temporalAddress, modelUrl };
      await Promise.all([
        step("Worker", () => processes.start(workerProcess(config, services))),
        step("API", () => processes.start(apiProcess(config, services))),
      ]);
      const atWork = await step("Interrupted conversations", (report) => atRest({ report, signal }));
      interrupted.signal.throwIfAborted();
      if (atWork > 0) say(stillAtWork(atWork));
      say(`Postgres         ${withoutPassword(databaseUrl)}`);
      say(`Temporal         ${temporalAddress}`);
      if (ui !== null) say(`Temporal Web UI  ${ui.url}`);
      say(`Model            ${modelLine(config)}`);
      say(`Data and logs    ${given.dataDir}`);
      announceUrl(folders, apiUrl(config));
      return apiUrl(config);
    },

    async stop() {
      interrupted.abort(new StartError("The start was interrupted."));
      lock?.announceRelease();
      await ui?.close(0);
      await processes.stop();
      await postgres?.stop();
      lock?.release();
    },

    kill() {
      interrupted.abort(new StartError("The start was interrupted."));
      processes.kill();
      postgres?.kill();
      lock?.release();
    },
  };
}

async function choosePort(config: Config): Promise<number> {
  if (config.port === 0) return freePort(config.host);
  if (await isFree(config.port, config.host)) return config.port;
  throw new StartError(
    `Nothing can listen on ${apiUrl(config)}: another program does, or the address is not this machine's. Set PORT to another port.`,
  );
}

function modelLine(config: Config): string {
  if (config.scriptedModel) {
    const why =
      config.anthropicApiKey === null ? "No ANTHROPIC_API_KEY: using" : "SCRIPTED_MODEL is set: using";
    return `${why} the built-in scripted model (demo, not a real model)`;
  }
  return config.anthropicBaseUrl === null ? config.model : `${config.model} at ${config.anthropicBaseUrl}`;
}

function withoutPassword(url: string): string {
  return url.replace(/^(\w+:\/\/[^:/@]*):[^@/]*@/, "$1:***@");
}
