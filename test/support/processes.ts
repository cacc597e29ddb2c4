/** Owns: what tests ask about the processes that tools have started. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { identify } from "../../local/process-identity.ts";
import { until } from "./waiting.ts";

/** Not there, or only its parent has not looked yet. */
export const isDead = (pid: number): boolean => identify(pid) === null;

/** Waits for a file whose first line is a process id; a file that is being written is not there yet. */
export const pidIn = (path: string): Promise<number> =>
  until(() => {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    return /^\d+\n/.test(text) && Number.parseInt(text, 10);
  });

/** The ids of the processes for which it holds; one that ends while it is looked at is none. */
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

/** The processes with this mark in their environment, which they cannot shed by leaving their parents. */
export const survivors = (mark: string): string[] =>
  processesWhere((pid) => readFileSync(`/proc/${pid}/environ`, "utf8").includes(`MARK=${mark}`));
