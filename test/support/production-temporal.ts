/**
 * Owns: a Temporal server for production, on Postgres, for tests and measurements. Its four services run in one process,
 * with the environment and the settings of docker-compose.yml.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, open, readFile, symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Connection } from "@temporalio/client";
import { msToTs } from "@temporalio/common/lib/time.js";
import { parse } from "yaml";
import { dyingWithParent } from "../../local/die-with-parent.ts";
import { freePort } from "../../local/ports.ts";
import { startPostgres } from "../../local/postgres.ts";
import type { Report } from "../../local/progress.ts";
import { buildTemporal, type PROGRAMS } from "../../local/temporal/build.ts";
import { cacheFolder } from "../../local/temporal/find.ts";
import { platformName, RELEASE } from "../../local/temporal/release.ts";
import { waitForTemporal } from "../../local/temporal/server.ts";
import { hiddenAddress } from "../../local/temporal/hidden-ui.ts";

const run = promisify(execFile);
const COMPOSE = join(import.meta.dirname, "..", "..", "docker-compose.yml");
const LOOPBACK = "127.0.0.1";
const STARTS_WITHIN_MS = 60_000;
const PAUSE_MS = 100;
const FRONTEND_PORT = 7233;

export type ProductionTemporal = {
  /** `host:port` */
  readonly address: string;
  readonly pid: number;
  /** Of its own Postgres; 0 when it was given one. */
  readonly postgresPid: number;
  stop(): Promise<void>;
};

/**
 * Starts a server with a Postgres of its own, durable as the product's, or on one that is there.
 *
 * @param dir an empty folder for all its data, which other users can enter
 * @param more settings that add to those of docker-compose.yml
 * @param shared the port of a Postgres on 127.0.0.1
 */
export async function startProductionTemporal(
  dir: string,
  onProgress: Report,
  more: NodeJS.ProcessEnv = {},
  shared: number | null = null,
): Promise<ProductionTemporal> {
  const [server, sqlTool] = [await program("server", onProgress), await program("sqlTool", onProgress)];
  const postgres =
    shared === null
      ? await startPostgres({ dataDir: join(dir, "data"), durable: true, port: await freePort() })
      : null;
  const port = postgres === null ? String(shared) : new URL(postgres.url).port;
  const compose = await readCompose();
  const settings = join(dir, "settings.yaml");
  await writeFile(settings, compose.configs["temporal-settings"].content);
  const { command, environment } = compose.services["temporal-schema"];
  await symlink(sqlTool, join(dir, "temporal-sql-tool"));
  const [shell = "", ...script] = command.map((part) => part.replaceAll("$$", "$"));
  await run(shell, script, {
    env: {
      ...environment,
      PATH: [dir, process.env["PATH"]].join(delimiter),
      ...{ SQL_HOST: LOOPBACK, SQL_PORT: port, SQL_USER: "app" },
    },
  });
  // An address of its own, because Postgres has no room for the number of a port that is free by chance.
  const { ip } = await hiddenAddress();
  const env: NodeJS.ProcessEnv = {
    ...compose.services.temporal.environment,
    PATH: process.env["PATH"],
    ...{ POSTGRES_SEEDS: LOOPBACK, DB_PORT: port, VISIBILITY_DB_PORT: port, POSTGRES_USER: "app" },
    BIND_ON_IP: ip,
    DYNAMIC_CONFIG_FILE_PATH: settings,
    LOG_LEVEL: "fatal",
    ...more,
  };
  const started = dyingWithParent({ command: server, args: ["start"] }, "SIGKILL");
  const log = await open(join(dir, "server.log"), "a");
  const child = spawn(started.command, started.args, { env, stdio: ["ignore", log.fd, log.fd] });
  await log.close();
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    }
    await postgres?.stop();
  };
  const address = `${ip}:${FRONTEND_PORT}`;
  try {
    await makeNamespace(address);
  } catch (error) {
    await stop();
    throw error;
  }
  return { address, pid: child.pid ?? 0, postgresPid: postgres?.pid ?? 0, stop };
}

/** The path of the program in the cache, where it is put when it is not there. */
async function program(name: keyof typeof PROGRAMS, onProgress: Report): Promise<string> {
  const folder = cacheFolder(process.env);
  await mkdir(folder, { recursive: true });
  const to = join(folder, `temporal-${name}-${RELEASE.version}-${platformName()}`);
  const runs = await run(to, ["--version"]).then(
    () => true,
    () => false,
  );
  if (!runs) await buildTemporal({ program: name, to, onProgress });
  return to;
}

type Compose = {
  readonly services: {
    readonly temporal: { readonly environment: Readonly<Record<string, string>> };
    readonly "temporal-schema": {
      readonly environment: Readonly<Record<string, string>>;
      readonly command: readonly string[];
    };
  };
  readonly configs: { readonly "temporal-settings": { readonly content: string } };
};

const readCompose = async (): Promise<Compose> =>
  parse(await readFile(COMPOSE, "utf8"), { merge: true }) as Compose;

/** Resolves when the server answers and its workers can poll the namespace `default`. */
async function makeNamespace(address: string): Promise<void> {
  const deadline = performance.now() + STARTS_WITHIN_MS;
  for (;;) {
    const connection = await Connection.connect({ address, connectTimeout: 1_000 }).catch(() => null);
    try {
      await connection?.workflowService.registerNamespace({
        namespace: "default",
        workflowExecutionRetentionPeriod: msToTs("7 days"),
      });
      if (connection !== null) break;
    } catch (error) {
      if (performance.now() > deadline) throw error;
    } finally {
      await connection?.close();
    }
    await pause(PAUSE_MS);
  }
  await waitForTemporal(address);
}
