/** Owns: starting and stopping the system on this machine: in this terminal, or in the background for an editor. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { loadConfig } from "../config.ts";
import { dataFolders, holderOfData } from "../local/data-dir.ts";
import { isRunning } from "../local/process-identity.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import type { Env } from "./server.ts";
import type { Terminal } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "..");
const SETUP = ["local/setup.mjs"];
const SYSTEM = ["local/run.mjs", "local/main.ts"];
/** Milliseconds. The first start may have to build the Temporal server. */
const READY_WITHIN = 600_000;
const STOPS_WITHIN = 15_000;

/** `npm start` in this checkout, with this terminal. */
export async function startHere(env: Env): Promise<ExitCode> {
  const options = { cwd: ROOT, stdio: "inherit" as const, env };
  if ((await exitOf(spawn(process.execPath, SETUP, options))) !== 0) return EXIT.failed;
  // As under npm: it stops when this process has ended, and counts a signal that comes from both as one.
  const child = spawn(process.execPath, [...SYSTEM, `--ends-with=${process.pid}`], options);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return (await exitOf(child)) === 0 ? EXIT.done : EXIT.failed;
}

/**
 * Starts it for good: it goes on when this process and the editor have ended. Does nothing if a server answers.
 *
 * @param tell says what is going on
 * @throws Error with the file that says why it did not start
 */
export async function startInBackground(url: string, env: Env, tell: (line: string) => void): Promise<void> {
  if (await isReady(url)) return;
  const { logDir } = dataFolders(loadConfig(env).dataDir);
  mkdirSync(logDir, { recursive: true });
  const file = join(logDir, "background.log");
  tell(`No server answers at ${url}: starting Bedrock in the background (its output is in ${file}) …`);
  const log = openSync(file, "w");
  const options = { cwd: ROOT, stdio: ["ignore" as const, log, log], env, detached: true };
  if ((await exitOf(spawn(process.execPath, SETUP, options))) !== 0) throw new Error(`See ${file}.`);
  const child = spawn(process.execPath, SYSTEM, options);
  child.unref();
  const until = performance.now() + READY_WITHIN;
  while (!(await isReady(url))) {
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`Bedrock did not start. See ${file}.`);
    await pause(200);
  }
}

/** Stops the system that uses this DATA_DIR, and everything that it started. */
export async function stop(terminal: Terminal, env: Env): Promise<ExitCode> {
  const holder = holderOfData(dataFolders(loadConfig(env).dataDir));
  if (holder === null) {
    terminal.tell("Nothing runs here.");
    return EXIT.done;
  }
  process.kill(holder.pid, "SIGTERM");
  const until = performance.now() + STOPS_WITHIN;
  while (isRunning(holder)) {
    if (performance.now() > until) {
      terminal.tell(`The process ${holder.pid} does not end.`, "red");
      return EXIT.failed;
    }
    await pause(50);
  }
  terminal.tell("Stopped.");
  return EXIT.done;
}

/** A server that asks for a token is one, too. */
async function isReady(url: string): Promise<boolean> {
  const answer = await fetch(`${url}/readyz`).catch(() => null);
  await answer?.body?.cancel();
  return answer !== null && answer.status !== 503;
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}
