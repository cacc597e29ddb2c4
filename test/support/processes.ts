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

/** The processes with this mark in their environment, which they cannot shed by leaving their parents. */
export function survivors(mark: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`MARK=${mark}`);
    } catch {
      return false;
    }
  });
}
