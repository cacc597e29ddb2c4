/** Owns: signals to a process that somebody keeps: it may be away for a moment, and then it is another one. */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { processesWhere } from "../test/support/processes.ts";

/** The number of the process as it is now; null, or an error, while there is none. */
export type Target = () => number | null;

/** Resolves when another has taken its place. */
export async function kill(target: Target, how: "SIGKILL" | "SIGTERM"): Promise<void> {
  const pid = await presentPid(target);
  signal(pid, how);
  while ((await presentPid(target)) === pid) await pause(20);
}

/** For so many milliseconds. */
export async function freeze(target: Target, ms: number): Promise<void> {
  const pid = await presentPid(target);
  // Each backend of Postgres has a session of its own. A worker's launcher goes on: it is a process of its own.
  const whom = [pid, ...backendsOf(pid)];
  for (const each of whom) signal(each, "SIGSTOP");
  try {
    await pause(ms);
  } finally {
    for (const each of whom) signal(each, "SIGCONT");
  }
}

/** Waits until there is one. */
export async function presentPid(target: Target): Promise<number> {
  for (;;) {
    try {
      const pid = target();
      if (pid !== null) {
        process.kill(pid, 0);
        return pid;
      }
    } catch {
      // Its file is missing for the moment in which it is started again.
    }
    await pause(20);
  }
}

const backendsOf = (postgres: number): number[] =>
  processesWhere((pid) => {
    const [, name, parent] = /^\d+ \((.*)\) . (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return name?.startsWith("postgres") === true && parent === String(postgres);
  }).map(Number);

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It died first.
  }
}
