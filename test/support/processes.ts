/** Owns: how tests inspect the processes that tools have started. */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { identify } from "../../local/process-identity.ts";
import { until } from "./waiting.ts";

/** True if the process is gone, or is a zombie that its parent has not reaped yet. */
export const isDead = (pid: number): boolean => identify(pid) === null;

/** Waits for a file whose first line is a process id; a file that is being written is not there yet. */
export const pidIn = (path: string): Promise<number> =>
  until(() => {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    return /^\d+\n/.test(text) && Number.parseInt(text, 10);
  });

/** A command that writes its process's id into the file, and goes on for long. */
export function longCommand(folder: string): { readonly command: string; readonly file: string } {
  const file = join(folder, randomUUID());
  return { command: `sleep 600 & echo $! > ${file}; wait`, file };
}

/** The ids of the processes for which `holds` is true, without those that end during the check. */
export function processesWhere(holds: (pid: string) => boolean): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return holds(pid);
    } catch {
      return false;
    }
  });
}

/** A process and its descendants, as long as their parents live. */
export function familyOf(pid: number): readonly number[] {
  const parents = processesWhere(() => true).map((each) => [Number(each), parentOf(each)] as const);
  const family = [pid];
  for (const member of family) {
    for (const [each, parent] of parents) if (parent === member) family.push(each);
  }
  return family;
}

/** null when it has ended. */
function parentOf(pid: string): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return null;
  }
}

/** The processes with this mark in their environment, which they cannot shed by leaving their parents. */
export const survivors = (mark: string): string[] =>
  processesWhere((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes(`MARK=${mark}`));
