/** Owns: checking whether a process is a running PostgreSQL server, because process ids are reused. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** False for any other program, and for a zombie, which only waits to be reaped. */
export function isServer(pid: number): boolean {
  try {
    if (process.platform === "linux") {
      const [, name, state] = /^\d+ \((.*)\) (\S)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      return name === "postgres" && state !== "Z" && state !== "X";
    }
    const line = execFileSync("ps", ["-o", "stat=,comm=", "-p", pid.toString()], { encoding: "utf8" }).trim();
    return !line.startsWith("Z") && line.endsWith("postgres");
  } catch {
    return false;
  }
}
