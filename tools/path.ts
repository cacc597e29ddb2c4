/** Owns: what a path in a tool's input means. */
import { homedir } from "node:os";
import { realpath } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";

/** An absolute path: relative ones are relative to `cwd`, `~` is the home directory. */
export function resolvePath(cwd: string, path: string): string {
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}

/**
 * Whether the file belongs to a process: these tools run inside the server, and its own files there hold its
 * environment, secrets included. Rejects when the file does not exist.
 */
export async function isProcessFile(path: string): Promise<boolean> {
  return /^\/proc\/\d+(\/|$)/.test(await realpath(path));
}
