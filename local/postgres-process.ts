/** Owns: checking whether a process is the PostgreSQL server of a data folder, because process ids are reused. */
import { readFileSync, statSync } from "node:fs";

/**
 * False for any other program, for the server of another folder, and for a zombie, which only waits to be reaped. A
 * server of another user, whose folder nobody else sees, counts.
 */
export function isServerOf(folder: string, pid: number): boolean {
  try {
    const [, name, state] = /^\d+ \((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return name === "postgres" && state !== "Z" && state !== "X" && worksIn(folder, pid);
  } catch {
    return false;
  }
}

/** PostgreSQL changes into its data folder. */
function worksIn(folder: string, pid: number): boolean {
  try {
    const [here, there] = [folder, `/proc/${pid}/cwd`].map((path) => statSync(path));
    return here?.dev === there?.dev && here?.ino === there?.ino;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EACCES";
  }
}
