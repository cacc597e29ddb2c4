/**
 * Owns: one process of a team, which can be killed and started again with the same settings, as a service manager does.
 * Nothing starts it by itself.
 */
import { once } from "node:events";
import type { ChildProcess } from "node:child_process";

export type Part = {
  readonly name: string;
  /** null while it does not run. */
  readonly pid: number | null;
  /** Starts it; resolves when it is ready. */
  readonly start: () => Promise<void>;
  /** Sends the signal, and resolves when the process has ended. */
  readonly end: (signal: NodeJS.Signals) => Promise<void>;
  /** Sends a signal after which the process goes on. False when it does not run. */
  readonly signal: (signal: NodeJS.Signals) => boolean;
};

type Running = {
  readonly pid: number;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly exited: Promise<void>;
  readonly ready: Promise<void>;
};

/** @param spawn starts the process once more */
export function partOf(name: string, spawn: () => Running): Part {
  let running: Running | null = null;
  return {
    name,
    get pid() {
      return running?.pid ?? null;
    },
    async start() {
      const started = spawn();
      running = started;
      const gone = started.exited.then(() => {
        if (running === started) running = null;
        return true;
      });
      const hasEnded = await Promise.race([started.ready.then(() => false), gone]);
      if (hasEnded) throw new Error(`${name} has ended before it was ready.`);
    },
    async end(signal) {
      const ending = running;
      ending?.signal(signal);
      await ending?.exited;
    },
    signal(signal) {
      running?.signal(signal);
      return running !== null;
    },
  };
}

/** A child whose readiness a check tells, and not a line of its output. */
export function runningOf(child: ChildProcess, isReady: () => Promise<unknown>): Running {
  const { pid } = child;
  if (pid === undefined) throw new Error("A process could not be started.");
  const exited = once(child, "exit").then(() => undefined);
  const ready = isReady().then(() => undefined);
  return { pid, exited, ready, signal: (signal) => void child.kill(signal) };
}
