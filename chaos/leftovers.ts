/** Owns: finding the processes in a folder of the run: commands while they run, and leftovers after the run. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { processesWhere } from "../test/support/processes.ts";
import { signal } from "./processes.ts";

/** Milliseconds within which everything must have died. */
const TIMEOUT_MS = 10_000;
const KILL_ROUNDS = 200;

/** Ids of the processes that work in a folder. */
export const commandsIn = (folder: string): string[] =>
  processesWhere((pid) => readlinkSync(`/proc/${pid}/cwd`).startsWith(folder));

/**
 * Waits for the end of the processes that work in a folder, or have its name in their arguments; describes those left
 * over.
 */
export async function leftoversOf(folder: string): Promise<string[]> {
  const until = performance.now() + TIMEOUT_MS;
  while (find(folder).length > 0 && performance.now() < until) await pause(50);
  return find(folder).map((pid) => `left over: ${pid} ${described(pid)}`);
}

/** Kills the leftovers, and the processes that they start meanwhile. */
export function killLeftovers(folder: string): void {
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const left = find(folder);
    if (left.length === 0) return;
    for (const pid of left) signal(Number(pid), "SIGKILL");
  }
}

const find = (folder: string): string[] =>
  processesWhere(
    (pid) =>
      pid !== String(process.pid) && (cwdOf(pid).startsWith(folder) || commandOf(pid).includes(folder)),
  );

function described(pid: string): string {
  try {
    return commandOf(pid);
  } catch {
    return "which is gone by now";
  }
}

const cwdOf = (pid: string): string => readlinkSync(`/proc/${pid}/cwd`);

const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
