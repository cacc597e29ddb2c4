/** Owns: what tests ask about the processes that tools have started. */
import { existsSync, readFileSync } from "node:fs";
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
