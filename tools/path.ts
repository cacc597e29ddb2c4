/** Owns: what a path in a tool's input means. */
import { homedir } from "node:os";
import { realpath } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { ToolError, type ToolContext } from "./tool.ts";

/**
 * An absolute path: relative ones are relative to `cwd`, `~` is the home directory. Throws a ToolError for what cannot
 * be one.
 */
export function resolvePath(cwd: string, path: string): string {
  if (path.includes("\0"))
    throw new ToolError("The path contains a NUL character, which no file's name has.");
  if (path === "~" || path.startsWith("~/")) return join(homedir(), path.slice(1));
  return isAbsolute(path) ? resolve(path) : resolve(cwd, path);
}

/**
 * The file or directory that a path leads to, without links. These tools run inside the server: they do not show what
 * only the server may read. Rejects if nothing is there; throws a ToolError if it is the server's.
 */
export async function readablePath(
  path: string,
  { cwd, hidden = [] }: Pick<ToolContext, "cwd" | "hidden">,
): Promise<string> {
  const resolved = resolvePath(cwd, path);
  // This comes before the path is looked for: whether it exists is not shown either.
  refuseHidden(resolved, hidden);
  const real = await realpath(resolved);
  refuseHidden(real, hidden);
  return real;
}

function refuseHidden(path: string, hidden: readonly string[]): void {
  if (isProcessFile(path)) throw new ToolError(`${path} belongs to a process and cannot be read.`);
  if (isDrained(path)) throw new ToolError(`${path} is emptied by being read. Use bash for it.`);
  if (isHidden(path, hidden)) throw new ToolError(`${path} is the server's own and cannot be read.`);
}

export const isHidden = (path: string, hidden: readonly string[]): boolean =>
  hidden.some((folder) => path === folder || path.startsWith(`${folder}/`));

/** Such files hold the environment of their process: the server's own with its secrets. @param path absolute */
export const isProcessFile = (path: string): boolean => /^\/proc\/\d+(\/|$)/.test(path);

/** Kernel logs look like files, but wait for more as pipes do, and show each line to one reader only. */
const isDrained = (path: string): boolean => /^\/(proc\/kmsg$|sys\/kernel\/(tracing|debug)(\/|$))/.test(path);
