/** Owns: which processes there are in a folder of the run: commands while they run, and what is left over after it. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { processesWhere } from "../test/support/processes.ts";
import { signal } from "./processes.ts";

/** Milliseconds in which everything must have died. */
const TIMEOUT_MS = 10_000;
const KILL_ROUNDS = 200;

/** Ids of the processes that work in a folder. */
export const commandsIn = (folder: string): string[] =>
  processesWhere((pid) => readlinkSync(`/proc/${pid}/cwd`).startsWith(folder));

/** Those that work in a folder, or were given its name, after some patience: what they are, in words. */
export async function leftoversOf(folder: string): Promise<string[]> {
  const until = performance.now() + TIMEOUT_MS;
  while (find(folder).length > 0 && performance.now() < until) await pause(50);
  return find(folder).map((pid) => `left over: ${pid} ${described(pid)}`);
}

/** Kills them, and those that they make meanwhile. */
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
