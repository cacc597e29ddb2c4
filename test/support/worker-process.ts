/** Owns: a worker, or another part, as a process of its own, for tests that freeze and kill it. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Product } from "./product.ts";
import type { System } from "./system.ts";

export type WorkerProcess = {
  readonly pid: number;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  /** The text that it has written so far. */
  readonly output: () => string;
};

/**
 * Spawns a worker with these environment variables.
 *
 * @param under a command that starts the worker: its name and arguments before those of the worker
 */
export const spawnWorker = (env: NodeJS.ProcessEnv, under: readonly string[] = []) =>
  spawnPart(WORKER, env, under);

/** Spawns one more worker of a product; `env` adds to what it needs to reach the servers and the model. */
export const spawnWorkerOf = (
  { databaseUrl, temporalAddress, payloadKeys, model }: Product,
  env: NodeJS.ProcessEnv = {},
) =>
  spawnWorker({
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporalAddress,
    PAYLOAD_KEY: payloadKeys.map((key) => Buffer.from(key).toString("base64")).join(","),
    ...{ ANTHROPIC_API_KEY: "bench", ANTHROPIC_BASE_URL: model.url },
    ...env,
  });

export type Program = {
  readonly program: string;
  /** What the line contains that it prints when it is ready. */
  readonly ready: string;
  /** The folder of its sources; this checkout unless given. */
  readonly root?: string;
  /** A file that gets what it writes to stderr, in place of our own stderr. */
  readonly log?: string;
};

export const WORKER: Program = { program: "worker.ts", ready: "worker ready" };
export const API: Program = { program: "api/main.ts", ready: "api ready" };

export function spawnPart(
  part: Program,
  env: NodeJS.ProcessEnv,
  under: readonly string[] = [],
): WorkerProcess & { readonly ready: Promise<void> } {
  const [program, ...args] = [...under, process.execPath, "local/run.mjs", part.program];
  const child: ChildProcess = spawn(program, args, {
    cwd: part.root ?? join(import.meta.dirname, "..", ".."),
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], ...env },
  });
  const exited = once(child, "exit").then(() => undefined);
  const { pid, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null)
    throw new Error(`${part.program} did not start`);
  let output = "";
  for (const stream of [stdout, stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  if (part.log === undefined) stderr.pipe(process.stderr);
  else stderr.pipe(createWriteStream(part.log, { flags: "a" }));
  const ready = (async () => {
    for await (const line of createInterface(stdout)) if (line.includes(part.ready)) break;
    // The interface pauses what it has read, and a full pipe would stop the process.
    stdout.resume();
  })();
  return { pid, signal: (signal) => void child.kill(signal), exited, output: () => output, ready };
}

/** Starts a worker process of this system. It ends with the file. */
export async function startWorkerProcess(
  { config, model, defer }: System,
  env: NodeJS.ProcessEnv = {},
  under: readonly string[] = [],
): Promise<WorkerProcess> {
  const settings = {
    DATABASE_URL: config.databaseUrl,
    TEMPORAL_ADDRESS: config.temporalAddress,
    TASK_QUEUE: config.taskQueue,
    TOOL_HOST: config.toolHost,
    ANTHROPIC_API_KEY: "test-key",
    ANTHROPIC_BASE_URL: model.url,
    DATA_DIR: await mkdtemp(join(tmpdir(), "bedrock-worker-")),
    ...env,
  };
  const worker = spawnWorker(settings, under);
  defer(async () => {
    worker.signal("SIGCONT");
    worker.signal("SIGKILL");
    await worker.exited;
  });
  await worker.ready;
  return worker;
}
