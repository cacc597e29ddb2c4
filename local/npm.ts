/**
 * Owns: noticing that npm has ended, if it started this process. Nobody else tells this process: whoever signals npm
 * alone signals no other process, and npm cannot pass SIGKILL on.
 */
import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds between two looks. */
const LOOK = 200;

/** The process id of npm, which `npm start` passes as `--ends-with=`; null for a start without npm. */
export function npmIn(args: readonly string[]): number | null {
  const [, pid] = args.map((arg) => /^--ends-with=(\d+)$/.exec(arg)).find((found) => found !== null) ?? [];
  return pid === undefined ? null : Number(pid);
}

/** True while npm is the parent: a process whose parent has ended gets another one. */
export const isParent = (npm: number): boolean => process.ppid === npm;

export async function untilGone(npm: number): Promise<void> {
  while (isParent(npm)) await pause(LOOK, undefined, { ref: false });
}
