/** Owns: signals to a process that somebody keeps: it may be away for a moment, and then it is another one. */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDead, processesWhere } from "../test/support/processes.ts";

/** The number of the process as it is now; null, or an error, while there is none. */
export type Target = () => number | null;

export const isPresent = (target: Target): boolean => pidOf(target) !== null;

/** @returns when another has taken its place; false when there was none */
export async function kill(target: Target, how: "SIGKILL" | "SIGTERM"): Promise<boolean> {
  const pid = pidOf(target);
  if (pid === null || !signal(pid, how)) return false;
  await untilPresent(() => (pidOf(target) === pid ? null : pidOf(target)));
  return true;
}

/** For so many milliseconds. @returns false when there was none */
export async function freeze(target: Target, ms: number): Promise<boolean> {
  const pid = pidOf(target);
  if (pid === null || !signal(pid, "SIGSTOP")) return false;
  // Each backend of Postgres has a session of its own. A worker's launcher goes on: it is a process of its own.
  const backends = backendsOf(pid);
  for (const each of backends) signal(each, "SIGSTOP");
  try {
    await pause(ms);
  } finally {
    for (const each of [pid, ...backends]) signal(each, "SIGCONT");
  }
  return true;
}

export async function untilPresent(target: Target): Promise<void> {
  while (!isPresent(target)) await pause(20);
}

function pidOf(target: Target): number | null {
  try {
    const pid = target();
    return pid === null || isDead(pid) ? null : pid;
  } catch {
    // Its file is missing for the moment in which it is started again.
    return null;
  }
}

const backendsOf = (postgres: number): number[] =>
  processesWhere((pid) => {
    const [, name, parent] = /^\d+ \((.*)\) . (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return name?.startsWith("postgres") === true && parent === String(postgres);
  }).map(Number);

/** False when it has died. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
