/** Owns: signals to a process that is kept running: it may be away for a moment, and come back with another id. */
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDead, processesWhere } from "../test/support/processes.ts";

/** The id of the present process; null, or an error, while there is none. */
export type Target = () => number | null;

export const isPresent = (target: Target): boolean => pidOf(target) !== null;

/** @returns when another has taken its place; false when there was none */
export async function kill(target: Target, how: "SIGKILL" | "SIGTERM"): Promise<boolean> {
  const pid = pidOf(target);
  if (pid === null || !signal(pid, how)) return false;
  await untilPresent(() => (pidOf(target) === pid ? null : pidOf(target)));
  return true;
}

/**
 * Does not wait for the next process, which starts only when it is needed.
 *
 * @returns false when there was none
 */
export function killOnly(target: Target): boolean {
  const pid = pidOf(target);
  return pid !== null && signal(pid, "SIGKILL");
}

/** The launcher of a worker's commands, or the process that keeps it; there is none before the first command. */
export const launcherOf =
  (worker: Target): Target =>
  () => {
    const pid = pidOf(worker);
    const [launcher] = processesWhere(
      (each) => parentOf(each) === String(pid) && nameOf(each).startsWith("bedrock-"),
    );
    return launcher === undefined ? null : Number(launcher);
  };

/**
 * Stops the process for `ms` milliseconds.
 *
 * @returns false when there was none
 */
export async function freeze(target: Target, ms: number): Promise<boolean> {
  const pid = pidOf(target);
  if (pid === null || !signal(pid, "SIGSTOP")) return false;
  // Each backend of Postgres has a session of its own, and is stopped, too. A worker's launcher goes on: it is a
  // process of its own.
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
    // Its file is missing for a moment while the process is started again.
    return null;
  }
}

const backendsOf = (postgres: number): number[] =>
  processesWhere((pid) => nameOf(pid).startsWith("postgres") && parentOf(pid) === String(postgres)).map(
    Number,
  );

const nameOf = (pid: string): string => readFileSync(`/proc/${pid}/comm`, "utf8");

function parentOf(pid: string): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
}

/** False when it has died. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
