/** Owns: programs of Python that only checks need: each is installed once, into an environment of its own in the cache. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../local/temporal/find.ts";

const run = promisify(execFile);

/**
 * The path of the program; null: this machine has no Python 3 that can make an environment.
 *
 * @param requirement the package with its version, as `pip` takes it
 */
export async function pythonTool(requirement: string, program: string): Promise<string | null> {
  const folder = join(cacheFolder(process.env), requirement);
  const path = join(folder, "bin", program);
  if (existsSync(join(folder, "whole"))) return path;
  await mkdir(cacheFolder(process.env), { recursive: true });
  // An environment holds its own path, so it is made in its place. The mark comes last.
  await rm(folder, { recursive: true, force: true });
  const made = await run("python3", ["-m", "venv", folder]).catch(() => null);
  if (made === null) return null;
  await run(join(folder, "bin", "python"), ["-m", "pip", "install", "--quiet", requirement]);
  await mkdir(join(folder, "whole"));
  return path;
}
