/**
 * Owns: the embedded PostgreSQL of `npm start` and the tests: starting and stopping it.
 * Not here: what is in the database (db/), its folders (postgres-cluster.ts), under which user it runs
 * (postgres-user.ts), where the binaries are (postgres-binaries.ts).
 *
 * The server ends with the process that started it. If one is left over all the same, the next start ends it.
 */
import { type FileHandle, mkdir, open, readFile, rm, rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openClient } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import { postgresBinaries } from "./postgres-binaries.ts";
import { type Cluster, clusterIn, prepareCluster } from "./postgres-cluster.ts";
import { isServerOf } from "./postgres-process.ts";
import { chooseUser } from "./postgres-user.ts";

export type PostgresOptions = {
  /** Folder for the cluster; the data go to a subfolder named by the major version. */
  readonly dataDir: string;
  /** false: a crash may lose data, for tests. */
  readonly durable: boolean;
  /** Listens on this port of 127.0.0.1 and trusts who comes: for tests with programs that know no sockets. */
  readonly port?: number;
  /** Receives one sentence for each step. */
  readonly onProgress?: (sentence: string) => void;
};

export type RunningPostgres = {
  /** The URL of the database `bedrock`; for openDatabase. */
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server is gone, for whatever reason. */
  readonly ended: Promise<void>;
  /** Ends the server and waits until it is gone. */
  stop(): Promise<void>;
  /** Ends it at once; the next start recovers. */
  kill(): void;
};

const DATABASE = "bedrock";
const LOOPBACK = "127.0.0.1";
/** Milliseconds to wait at most for a start, recovery after a crash included, and for a stop. */
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 10_000;
const POLL_MS = 15;

/**
 * Starts the server on a data folder, creating both on the first run. No other process may do so at the same time: a
 * server that runs there is taken for a leftover. Rejects with a sentence that says what to do instead when this machine
 * cannot run it.
 */
export async function startPostgres(options: PostgresOptions): Promise<RunningPostgres> {
  const progress = options.onProgress ?? (() => undefined);
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const bin = await postgresBinaries();
  const user = await chooseUser([dataDir, bin]);
  const cluster = clusterIn({ dataDir, durable: options.durable, port: options.port ?? null, bin, user });
  await endLeft(cluster, progress);
  await prepareCluster(cluster, progress);

  const { pid, ended, kill } = await serve(cluster, progress);
  await createDatabase(cluster);
  return {
    ...{ url: urlOf(cluster, DATABASE), pid, ended, kill },
    async stop() {
      await stop(cluster, pid);
      // The folder stays if a socket is left in it: the next start uses both again.
      await rmdir(cluster.sockets).catch(() => undefined);
    },
  };
}

function urlOf(cluster: Cluster, database: string): string {
  // With a port, its socket has another name.
  if (cluster.port !== null) return `postgres://app@${LOOPBACK}:${cluster.port}/${database}`;
  return `postgres://app@localhost/${database}?host=${encodeURIComponent(cluster.sockets)}`;
}

/** The process that the data folder's lock file names; 0 when there is no such file. */
async function lockHolder(cluster: Cluster): Promise<number> {
  const lock = await readFile(lockFile(cluster), "utf8").catch(() => "");
  return Number.parseInt(lock, 10) || 0;
}

const lockFile = (cluster: Cluster): string => join(cluster.folder, "postmaster.pid");

/** Tries again while the remains of a server that was killed hold the folder. */
async function serve(cluster: Cluster, progress: (sentence: string) => void): Promise<Server> {
  const deadline = performance.now() + START_LIMIT_MS;
  for (;;) {
    progress("Starting PostgreSQL.");
    const started = await start(cluster, deadline);
    if (started !== null) return started;
    await sleep(100);
  }
}

/** Ends the server that an earlier start has left on this folder: it would not end together with this process. */
async function endLeft(cluster: Cluster, progress: (sentence: string) => void): Promise<void> {
  const pid = await lockHolder(cluster);
  if (pid <= 0) return;
  if (isServerOf(cluster.folder, pid)) {
    progress("Ending the PostgreSQL server of an earlier start.");
    await stop(cluster, pid);
  } else if (isAlive(pid)) {
    // PostgreSQL removes the file of a process that is gone, but takes any process with that id for a server.
    await rm(lockFile(cluster), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

type Server = Pick<RunningPostgres, "pid" | "ended" | "kill">;

/** null when the remains of a server that was killed hold the folder. */
async function start(cluster: Cluster, deadline: number): Promise<Server | null> {
  const log = await openLog(cluster.log);
  const child = cluster.user.spawn(join(cluster.bin, "postgres"), serverArguments(cluster), log.file.fd);
  // Without a listener a failed spawn would end this process; `isOver` sees it by the missing pid.
  child.on("error", () => undefined);
  child.unref();
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  // SIGQUIT is a crash that the next start recovers from.
  const kill = (): void => void child.kill("SIGQUIT");
  await log.file.close();
  const isOver = () => child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  try {
    // The server is ready when it answers and the lock file names this process. The old file may still be there.
    const ready = await waitUntil(async () => {
      if (isOver()) return false;
      return (await lockHolder(cluster)) === child.pid && (await canConnect(cluster)) ? true : null;
    }, deadline - performance.now());
    if (ready === true && child.pid !== undefined) return { pid: child.pid, ended, kill };
    const output = (await readFile(cluster.log)).subarray(log.length).toString();
    if (isOver() && performance.now() < deadline && /still in use|already exists/.test(output)) return null;
    throw new Error(`PostgreSQL did not start (${cluster.log}):\n${output.slice(-2000)}`);
  } catch (error) {
    kill();
    throw error;
  }
}

/**
 * Opens the log for appending, because an earlier server may still write to it. A long log is truncated.
 */
async function openLog(path: string): Promise<{ file: FileHandle; length: number }> {
  const file = await open(path, "a", 0o600);
  let { size } = await file.stat();
  if (size > LONGEST_LOG) {
    await file.truncate();
    size = 0;
  }
  return { file, length: size };
}

/** Bytes. */
const LONGEST_LOG = 1_000_000;

function serverArguments(cluster: Cluster): string[] {
  const { port } = cluster;
  const settings = {
    ...(port === null ? { listen_addresses: "" } : { listen_addresses: LOOPBACK, port: String(port) }),
    unix_socket_permissions: "0700",
    shared_buffers: "64MB",
    jit: "off",
    ...(cluster.durable
      ? {}
      : { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "300" }),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["-D", cluster.folder, "-k", cluster.sockets, ...flags];
}

async function canConnect(cluster: Cluster): Promise<boolean> {
  // A cluster that was made a standby has started, too.
  const client = openClient(urlOf(cluster, "postgres"), "bedrock start", "any");
  try {
    const [row] = await client<{ folder: string }[]>`select current_setting('data_directory') as folder`;
    return row?.folder === cluster.folder;
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  } finally {
    await client.end({ timeout: 1 });
  }
}

async function createDatabase(cluster: Cluster): Promise<void> {
  const client = openClient(urlOf(cluster, "postgres"), "bedrock start", "any");
  try {
    const found = await client`select from pg_database where datname = ${DATABASE}`;
    if (found.length === 0) await client`create database ${client(DATABASE)}`;
  } finally {
    await client.end({ timeout: 1 });
  }
}

async function stop({ folder }: Cluster, pid: number): Promise<void> {
  // SIGINT closes the connections and writes a checkpoint.
  for (const signal of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (!isServerOf(folder, pid)) return;
    tell(pid, signal);
    // A server that was stopped (SIGSTOP) hears nothing else.
    tell(pid, "SIGCONT");
    const gone = await waitUntil(() => Promise.resolve(isServerOf(folder, pid) ? null : true), STOP_LIMIT_MS);
    if (gone === true) return;
  }
  throw new Error(`PostgreSQL (process ${pid}) does not stop.`);
}

function tell(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code === "EPERM")
      throw new Error(`PostgreSQL (process ${pid}) belongs to another user: end it, or set DATA_DIR.`);
    // Otherwise it has ended at this moment.
  }
}

/** Asks until the answer is not null; resolves to null when the time is over. */
async function waitUntil<T>(ask: () => Promise<T | null>, limitMs: number): Promise<T | null> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null || performance.now() > deadline) return answer;
    await sleep(POLL_MS);
  }
}
