/**
 * Owns: one child process over its whole life. It runs in a process group of its own, so that Ctrl-C reaches `npm
 * start` only. Its output goes to a log file, because a pipe would break with `npm start`. It is started again when it
 * dies, and ended by SIGTERM and then SIGKILL. When this process is killed, the kernel kills it, too; if it lives on all
 * the same, the next start finds its identity on disk.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { readable } from "../observability/readable.ts";
import { dyingWithParent } from "./die-with-parent.ts";
import { identify } from "./process-identity.ts";
import { sentenceOf, StartError } from "./start-error.ts";

export type ProcessSpec = {
  /** Unique; it is in the log's file name and in the lines for the user. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /**
   * Settings that must not be in an environment. The process reads them from descriptor 3, as a JSON object, after it has
   * sent a byte: then no other program can read its memory.
   */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /**
   * When it is ready: a line that it prints, or a check that resolves. The signal aborts when the process has ended.
   * Without `ready`, the process is ready once it runs.
   */
  readonly ready?: { readonly line: RegExp } | { readonly check: (signal: AbortSignal) => Promise<void> };
  /** Milliseconds within which it must become ready; 60000 by default. */
  readonly readyWithin?: number;
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly stopWithin: number;
};

export type ProcessFiles = { readonly log: string; readonly identity: string };

/** Milliseconds before a process that died is started again; doubled each time, up to LONGEST_BACKOFF. */
const FIRST_BACKOFF = 100;
const LONGEST_BACKOFF = 5000;
/** Milliseconds after which a running process counts as healthy: its next death counts as the first. */
const WELL_AFTER = 3_000;
const LARGEST_LOG = 10_000_000;

export class ManagedProcess {
  readonly #spec: ProcessSpec;
  readonly #files: ProcessFiles;
  readonly #say: (line: string) => void;
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #restart: NodeJS.Timeout | undefined;
  #backoff = FIRST_BACKOFF;
  #wasReady = false;
  #stopping = false;

  constructor(spec: ProcessSpec, files: ProcessFiles, say: (line: string) => void) {
    this.#spec = spec;
    this.#files = files;
    this.#say = say;
  }

  /** null while it does not run. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /**
   * Starts it and waits until it is ready; from then on it is started again whenever it dies.
   *
   * @throws StartError with the last lines of its output, when it ends first or takes too long.
   */
  async start(): Promise<void> {
    const { name, ready, readyWithin = 60_000 } = this.#spec;
    const from = this.#spawn();
    const gone = new AbortController();
    void this.#ended.then(() => gone.abort());
    // Not AbortSignal.timeout: inside AbortSignal.any nothing keeps its timer alive (nodejs/node#54614).
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), readyWithin);
    const waiting = AbortSignal.any([gone.signal, late.signal]);
    try {
      if (ready !== undefined) {
        await ("line" in ready ? this.#saidLine(ready.line, from, waiting) : ready.check(waiting));
      }
    } catch (error) {
      if (this.#stopping) throw error;
      const cause = gone.signal.aborted
        ? "ended before it was ready"
        : waiting.aborted
          ? `was not ready within ${readyWithin / 1000} s`
          : `is not ready: ${sentenceOf(error)}`;
      throw new StartError(`The ${name} process ${cause}.${this.#lastWords(from)}`);
    } finally {
      clearTimeout(timer);
    }
    this.#wasReady = true;
    if (gone.signal.aborted) this.#startAgain();
  }

  /** Ends it for good; resolves when it is gone. */
  async stop(within = this.#spec.stopWithin): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restart);
    this.#signal("SIGTERM");
    const late = setTimeout(() => this.#signal("SIGKILL"), within);
    await this.#ended;
    clearTimeout(late);
  }

  /** Ends it at once. */
  kill(): void {
    this.#stopping = true;
    clearTimeout(this.#restart);
    this.#signal("SIGKILL");
  }

  /** Returns the offset in the log at which this run begins. */
  #spawn(): number {
    const { env, secrets, cwd } = this.#spec;
    const { command, args } = dyingWithParent(this.#spec, "SIGKILL");
    const { log, fd, from } = openLog(this.#files.log);
    const startedAt = performance.now();
    const stdio = ["ignore" as const, fd, fd, ...(secrets === undefined ? [] : ["pipe" as const])];
    const child = spawn(command, args, { env, cwd, detached: true, stdio });
    closeSync(fd);
    if (secrets !== undefined) hand(child, secrets);
    const identity = child.pid === undefined ? null : identify(child.pid);
    try {
      if (identity !== null) writeFileSync(this.#files.identity, JSON.stringify(identity));
    } catch (error) {
      // Without its identity on disk, the next start could not find and end it.
      child.kill("SIGKILL");
      throw error;
    }
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      const settle = (how: string) => {
        if (this.#child !== child) return;
        this.#child = null;
        rmSync(this.#files.identity, { force: true });
        if (performance.now() - startedAt > WELL_AFTER) this.#backoff = FIRST_BACKOFF;
        if (this.#wasReady && !this.#stopping) {
          this.#say(`The ${this.#spec.name} process ended (${how}) and is started again; see ${log}`);
          this.#startAgain();
        }
        resolve();
      };
      child.once("error", (error) => {
        if (child.pid === undefined) settle(sentenceOf(error));
      });
      child.once("exit", (code, signal) => settle(signal ?? `exit code ${String(code)}`));
    });
    return from;
  }

  #startAgain(): void {
    if (this.#stopping) return;
    this.#restart = setTimeout(() => this.#spawnAgain(), this.#backoff);
    this.#backoff = Math.min(this.#backoff * 2, LONGEST_BACKOFF);
  }

  /**
   * A spawn may fail because the disk is full, and succeed later. This failure must not end `npm start`, which keeps
   * all other processes running.
   */
  #spawnAgain(): void {
    try {
      this.#spawn();
    } catch (error) {
      this.#say(`The ${this.#spec.name} process cannot be started, and is tried again: ${sentenceOf(error)}`);
      this.#startAgain();
    }
  }

  /**
   * Signals the whole process group. A child that has ended is never signalled, because its id may belong to another
   * process now.
   */
  #signal(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // It has ended at this moment.
    }
  }

  async #saidLine(line: RegExp, from: number, waiting: AbortSignal): Promise<void> {
    while (!line.test(this.#wordsSince(from))) await pause(50, undefined, { signal: waiting });
  }

  #wordsSince(from: number): string {
    return readFileSync(this.#files.log).subarray(from).toString();
  }

  /** Its last lines, without stacks: those are in the log. */
  #lastWords(from: number): string {
    const lines = this.#wordsSince(from)
      .split("\n")
      .filter((line) => line.trim() !== "" && !/^\s+at /.test(line));
    const last = lines.slice(-8).map((line) => `\n  | ${readable(line).trimEnd().slice(0, 300)}`);
    return `${last.length === 0 ? "" : ` Its last words:${last.join("")}`}\nAll of them: ${this.#files.log}`;
  }
}

function hand(child: ChildProcess, secrets: Readonly<Record<string, string>>): void {
  const pipe = child.stdio[3] as Duplex | null;
  // The child may be dead already; its exit is handled elsewhere.
  pipe?.on("error", () => undefined);
  pipe?.once("data", () => pipe.end(JSON.stringify(secrets)));
}

/**
 * Opens the log for appending; what is written from now on begins at byte `from`. A log that has grown large is put
 * aside, in place of the one put aside before.
 */
export function openLog(log: string): { log: string; fd: number; from: number } {
  try {
    if (statSync(log).size > LARGEST_LOG) renameSync(log, `${log}.1`);
  } catch {
    // There is no log before the first start.
  }
  const fd = openSync(log, "a", 0o600);
  return { log, fd, from: statSync(log).size };
}
