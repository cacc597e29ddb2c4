/** Owns: which processes there are in a folder of the run: commands while they run, and what is left over after it. */
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { processesWhere } from "../test/support/processes.ts";

/** Milliseconds in which everything must have died. */
const PATIENCE_MS = 10_000;

/** Ids of the processes that work in a folder. */
export const commandsIn = (folder: string): string[] =>
  processesWhere((pid) => readlinkSync(`/proc/${pid}/cwd`).startsWith(folder));

/** Those that work in a folder, or were given its name, after some patience: what they are, in words. */
export async function leftoversOf(folder: string): Promise<string[]> {
  const find = (): string[] =>
    processesWhere(
      (pid) =>
        pid !== String(process.pid) && (cwdOf(pid).startsWith(folder) || commandOf(pid).includes(folder)),
    );
  const until = performance.now() + PATIENCE_MS;
  while (find().length > 0 && performance.now() < until) await pause(50);
  return find().map((pid) => `left over: ${pid} ${described(pid)}`);
}

function described(pid: string): string {
  try {
    return commandOf(pid);
  } catch {
    return "which is gone by now";
  }
}

const cwdOf = (pid: string): string => readlinkSync(`/proc/${pid}/cwd`);

const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
