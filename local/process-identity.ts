/**
 * Owns: distinguishing a process from a later one with the same id. An id alone is never enough to signal a process
 * that another process started.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** A process id and its start time; no other process of this machine ever has both. */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string };

/** The identity of a running process; null when there is none, or only a zombie. */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === "linux" ? startOnLinux(pid) : startByPs(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** True if the process that was identified still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.startedAt === identity.startedAt;
}

/** Reads back what was written as JSON; null for anything else. */
export function parseIdentity(text: string): ProcessIdentity | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return null;
    const { pid, startedAt } = value as Partial<Record<keyof ProcessIdentity, unknown>>;
    const valid = Number.isSafeInteger(pid) && (pid as number) > 1 && typeof startedAt === "string";
    return valid ? { pid: pid as number, startedAt } : null;
  } catch {
    return null;
  }
}

function startOnLinux(pid: number): string | null {
  try {
    // The command's name, in parentheses, may hold spaces and parentheses itself.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state] = fields;
    const ticks = fields[19];
    if (ticks === undefined || state === "Z" || state === "X") return null;
    // Ticks count from boot, so the boot is part of the identity.
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${ticks}`;
  } catch {
    return null;
  }
}

function startByPs(pid: number): string | null {
  try {
    const output = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], { encoding: "utf8" });
    const [state = "", ...started] = output.trim().split(/\s+/);
    return state.startsWith("Z") || started.length === 0 ? null : started.join(" ");
  } catch {
    return null;
  }
}
