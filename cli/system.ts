/** Owns: starting and stopping the system on this machine: in this terminal, or in the background for an editor. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ConfigError, loadConfig } from "../config.ts";
import { announcedUrl, dataFolders, holderOfData, makeFolders, type DataFolders } from "../local/data-dir.ts";
import { lock } from "../local/lock.ts";
import { openLog } from "../local/managed-process.ts";
import { isRunning, type ProcessIdentity } from "../local/process-identity.ts";
import { StartError } from "../local/start-error.ts";
import { EXIT, UsageError, type ExitCode } from "./exit-codes.ts";
import type { Env } from "./server.ts";
import type { Terminal } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "..");
const SETUP = ["local/setup.mjs"];
const SYSTEM = ["local/run.mjs", "local/main.ts"];
/** Milliseconds. The first start may have to build the Temporal server. */
const READY_WITHIN = 600_000;
const STOPS_WITHIN = 15_000;
const ANSWERS_WITHIN = 3_000;

/** `npm start` in this checkout, with this terminal. */
export async function startHere(env: Env): Promise<ExitCode> {
  const options = { cwd: ROOT, stdio: "inherit" as const, env: ofSystem(env) };
  if ((await exitOf(spawn(process.execPath, SETUP, options))) !== 0) return EXIT.failed;
  // As under npm: it stops when this process has ended, and counts a signal that comes from both as one.
  const child = spawn(process.execPath, [...SYSTEM, `--ends-with=${process.pid}`], options);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return (await exitOf(child)) === 0 ? EXIT.done : EXIT.failed;
}

/**
 * Starts it for good: it goes on when this process and the editor have ended. Does nothing if a server answers. Of
 * several editors that come at once, one starts it, and the others wait for that.
 *
 * @param tell says what is going on
 * @throws StartError
 */
export async function startInBackground(url: string, env: Env, tell: (line: string) => void): Promise<void> {
  if ((await answerAt(url)) === "ready") return;
  const folders = foldersOf(env);
  makeFolders(folders);
  const mine = await lock(join(folders.runDir, "background.lock"), () =>
    tell("Bedrock is being started by another editor …"),
  );
  try {
    const answer = await answerAt(url);
    if (answer === "ready") return;
    if (answer === "another program")
      throw new StartError(
        `Another program answers at ${url}. Stop it, or set PORT to another port, or BEDROCK_URL to a server of Bedrock.`,
      );
    const holder = holderOfData(folders);
    if (holder !== null && (await becomesReady(url, holder, folders))) return;
    await start(url, env, folders, tell);
  } finally {
    mine.release();
  }
}

async function start(
  url: string,
  env: Env,
  folders: DataFolders,
  tell: (line: string) => void,
): Promise<void> {
  const { log, fd, from } = openLog(join(folders.logDir, "background.log"));
  tell(`No server answers at ${url}: starting Bedrock in the background (its output is in ${log}) …`);
  const options = {
    ...{ cwd: ROOT, stdio: ["ignore" as const, fd, fd], detached: true },
    env: { ...ofSystem(env), PORT: new URL(url).port },
  };
  const failed = (): StartError => new StartError(`Bedrock did not start. ${lastWords(log, from)}`);
  try {
    if ((await exitOf(spawn(process.execPath, SETUP, options))) !== 0) throw failed();
    const child = spawn(process.execPath, SYSTEM, options);
    child.unref();
    const until = performance.now() + READY_WITHIN;
    while ((await answerAt(url)) !== "ready") {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > until) throw failed();
      await pause(200);
    }
  } finally {
    closeSync(fd);
  }
}

/** Without what is for clients: the agent's commands can read the environment of each of the system's processes. */
function ofSystem(env: Env): NodeJS.ProcessEnv {
  const { BEDROCK_TOKEN: _, BEDROCK_TOKEN_FILE: __, ...settings } = env;
  return settings;
}

/** Waits for a system that somebody else has started; false: it has ended. */
async function becomesReady(url: string, holder: ProcessIdentity, folders: DataFolders): Promise<boolean> {
  const who = `Bedrock runs with the data in ${folders.dataDir} (process ${holder.pid})`;
  const until = performance.now() + READY_WITHIN;
  while ((await answerAt(url)) !== "ready") {
    const elsewhere = announcedUrl(folders);
    if (elsewhere !== null && elsewhere !== url)
      throw new StartError(`${who} at ${elsewhere}, not at ${url}. Set BEDROCK_URL=${elsewhere}`);
    if (!isRunning(holder)) return false;
    if (performance.now() > until) throw new StartError(`${who}, and does not become ready.`);
    await pause(200);
  }
  return true;
}

/** What it has printed since, without the news of its progress. */
function lastWords(log: string, from: number): string {
  const lines = readFileSync(log)
    .subarray(from)
    .toString()
    .split("\n")
    .filter((line) => line.trim() !== "" && !/( …|, \d+ s)$/.test(line) && !/ … \d+ s$/.test(line));
  return `${lines.slice(-12).join("\n")}\nAll of its output: ${log}`;
}

/** Stops the system that uses this DATA_DIR, and everything that it started. */
export async function stop(terminal: Terminal, env: Env): Promise<ExitCode> {
  const folders = foldersOf(env);
  const holder = holderOfData(folders);
  if (holder === null) {
    terminal.tell(`Nothing runs with the data in ${folders.dataDir}.`);
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

/** @throws UsageError */
function foldersOf(env: Env): DataFolders {
  try {
    return dataFolders(loadConfig(env).dataDir);
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message);
    throw error;
  }
}

type Answer = "ready" | "not ready" | "another program" | "nothing";

async function answerAt(url: string): Promise<Answer> {
  const [health, ready] = await Promise.all([jsonOf(`${url}/healthz`), jsonOf(`${url}/readyz`)]);
  if (health === null) return "nothing";
  if (typeof health !== "object" || !("sandbox" in health)) return "another program";
  return typeof ready === "object" && ready !== null && "ready" in ready ? "ready" : "not ready";
}

/** Null: no answer in time; else the body, or its absence. */
async function jsonOf(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWERS_WITHIN) });
    return await response.json().catch(() => "");
  } catch {
    return null;
  }
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}
