/**
 * Owns: how the development server is run: its flags, its settings, and when it is ready. A workflow's hand-offs are
 * five times slower with the server's defaults.
 * Not here: who restarts it (process-manager.ts), where the program comes from (find.ts).
 */
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { Connection } from "@temporalio/client";
import { dyingWithParent } from "../die-with-parent.ts";
import { freePort } from "../ports.ts";
import { sentenceOf, StartError } from "../start-error.ts";
import { SEARCH_ATTRIBUTES } from "../../protocol/search-attributes.ts";
import type { UiAddress } from "./hidden-ui.ts";

/** Each shard's queues are read 20 times a second by default, and the development server has one shard. */
const POLLS_PER_SECOND = 2000;

/**
 * The server notices that a workflow task is lost with its worker only when the task's time is over: 2 s
 * (WORKFLOW_TASK_TIMEOUT_MS). From the fourth loss in a row on, each try gets more time, doubled each time, up to this
 * limit. By default it grows to ten minutes, in which the conversation does nothing and not even a Stop gets through.
 */
const LONGEST_GROWTH = "5s";

/**
 * The server opens its HTTP API on a random port, and by default it takes requests from any web page. No browser sends
 * this host name, so the API takes none. No flag closes the port itself.
 */
const NO_HOST: readonly string[] = ["closed.invalid"];

/** With these settings a cancel is pushed to the worker, instead of waiting for a heartbeat. */
export const PUSH = ["frontend.WorkerCommandsEnabled", "system.enableCancelActivityWorkerCommand"] as const;
/** A run may start at once after another one of its workflow. By default a second has to lie between their starts. */
export const RUNS_AT_ONCE = "history.workflowIdReuseMinimalInterval";

const SETTINGS: Readonly<Record<string, number | boolean | string | readonly string[]>> = {
  "history.transferProcessorMaxPollRPS": POLLS_PER_SECOND,
  "history.timerProcessorMaxPollRPS": POLLS_PER_SECOND,
  "history.outboundProcessorMaxPollRPS": POLLS_PER_SECOND,
  "history.visibilityProcessorMaxPollRPS": POLLS_PER_SECOND,
  "history.workflowTaskRetryMaxInterval": LONGEST_GROWTH,
  [RUNS_AT_ONCE]: "0s",
  ...Object.fromEntries(PUSH.map((key) => [key, true])),
  "frontend.httpAllowedHosts": NO_HOST,
  // Allows activities without a workflow: the questions to a tool host (describeHost, checkDirectory).
  "activity.enableStandalone": true,
};

export type TemporalOptions = {
  /** Path of the program. */
  readonly binary: string;
  /** The database; without it everything is in memory and lost at the end. Its folder exists. */
  readonly dbFile?: string;
  /** Made if it does not exist; the namespace `default` always exists. */
  readonly namespace?: string;
  readonly port: number;
  /** Where its Web UI listens, and the address of its codec; null: there is none. */
  readonly ui: (UiAddress & { readonly codec: string }) | null;
  /** Settings that stay at the server's defaults, as on one that nobody has set up. */
  readonly without?: readonly string[];
};

export type Command = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

/** The command that runs a server with these options. It listens on loopback only. */
export function temporalCommand(options: TemporalOptions): Command {
  const { binary, dbFile, namespace = "default", port, ui, without = [] } = options;
  // Safe against a killed process, but not against power loss; a lost Temporal database loses no conversation. The file
  // stays locked, so that no other program that may read it can block the server with a lock of its own.
  const pragmas = ["locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"].flatMap((pragma) => [
    "--sqlite-pragma",
    pragma,
  ]);
  const attributes = Object.keys(SEARCH_ATTRIBUTES).flatMap((name) => [
    "--search-attribute",
    `${name}=Keyword`,
  ]);
  const settings = Object.entries(SETTINGS)
    .filter(([key]) => !without.includes(key))
    .flatMap(([key, value]) => ["--dynamic-config-value", `${key}=${JSON.stringify(value)}`]);
  const args = [
    ...["server", "start-dev", "--ip", "127.0.0.1", "--port", String(port), "--log-level", "error"],
    ...["--namespace", namespace],
    ...(ui === null
      ? ["--headless"]
      : [
          "--ui-ip",
          ui.ip,
          "--ui-port",
          String(ui.port),
          "--ui-disable-news-fetch",
          "--ui-codec-endpoint",
          ui.codec,
        ]),
    ...(dbFile === undefined ? [] : ["--db-filename", dbFile, ...pragmas]),
    ...attributes,
    ...settings,
  ];
  const { PATH, HOME, TMPDIR, TZ } = process.env;
  // Fewer garbage collections: 15-20 % of the server's processor time.
  return { command: binary, args, env: { PATH, HOME, TMPDIR, TZ, GOGC: "400" } };
}

/**
 * Waits until the server answers and knows its namespace.
 *
 * @param within milliseconds.
 * @throws StartError
 */
export async function waitForTemporal(
  address: string,
  options: { readonly namespace?: string; readonly within?: number; readonly signal?: AbortSignal } = {},
): Promise<void> {
  const { namespace = "default", within = 30_000, signal } = options;
  const deadline = performance.now() + within;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const connection = await Connection.connect({ address, connectTimeout: 1000 });
      try {
        await connection.workflowService.describeNamespace({ namespace });
        return;
      } finally {
        await connection.close();
      }
    } catch (error) {
      if (performance.now() > deadline) {
        throw new StartError(`The Temporal server at ${address} does not answer: ${sentenceOf(error)}`);
      }
    }
    await pause(50);
  }
}

export type RunningTemporal = {
  /** `host:port` */
  readonly address: string;
  readonly pid: number;
  /** Ends the server; after two seconds, at once. */
  stop(): Promise<void>;
};

type TestServer = {
  readonly binary: string;
  readonly dbFile?: string;
  readonly port?: number;
  readonly without?: readonly string[];
};

/** Another program may take a free port before the server listens on it. */
const PORTS_TRIED = 3;

/** Starts a server for a test: a child that ends with this process, on free ports unless they are given. */
export async function startTemporal(options: TestServer): Promise<RunningTemporal> {
  for (let tried = 1; ; tried++) {
    try {
      return await startOn(options.port ?? (await freePort()), options);
    } catch (error) {
      const isTaken = sentenceOf(error).includes("address already in use");
      if (!isTaken || options.port !== undefined || tried === PORTS_TRIED) throw error;
    }
  }
}

async function startOn(port: number, options: TestServer): Promise<RunningTemporal> {
  const server = temporalCommand({ ...options, port, ui: null });
  const { command, args } = dyingWithParent(server, "SIGKILL");
  const { env } = server;
  const child = spawn(command, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-2000);
  });
  const ended = new AbortController();
  const exit = new Promise<void>((resolve) => {
    const settle = () => {
      ended.abort(new StartError(`The Temporal server ended: ${said.trim()}`));
      resolve();
    };
    child.once("error", settle);
    child.once("exit", settle);
  });
  const stop = async () => {
    const late = setTimeout(() => child.kill("SIGKILL"), 2000);
    child.kill("SIGTERM");
    await exit;
    clearTimeout(late);
  };
  const address = `127.0.0.1:${port}`;
  try {
    await waitForTemporal(address, { signal: ended.signal });
  } catch (error) {
    await stop();
    throw error;
  }
  return { address, pid: child.pid ?? 0, stop };
}
