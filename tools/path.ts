/** Owns: what a path in a tool's input means. */
import { homedir } from "node:os";
import { realpath } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { Refusal, type ToolContext } from "./tool.ts";

/** An absolute path: relative ones are relative to `cwd`, `~` is the home directory. */
export function resolvePath(cwd: string, path: string): string {
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}

/**
 * The file or directory that a path leads to, without links. These tools run inside the server: they do not show what
 * it alone may read. Rejects when there is none; throws Refusal when it is the server's.
 */
export async function readablePath(
  path: string,
  { cwd, hidden = [] }: Pick<ToolContext, "cwd" | "hidden">,
): Promise<string> {
  const real = await realpath(resolvePath(cwd, path));
  if (isProcessFile(real)) throw new Refusal(`${real} belongs to a process and cannot be read.`);
  if (hidden.some((folder) => real === folder || real.startsWith(`${folder}/`)))
    throw new Refusal(`${real} is the server's own and cannot be read.`);
  return real;
}

/** Such files hold the environment of their process: the server's own with its secrets. @param real without links */
export const isProcessFile = (real: string): boolean => /^\/proc\/\d+(\/|$)/.test(real);
