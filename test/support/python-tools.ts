/** Owns: programs of Python that only checks need: each is installed once, into an environment of its own in the cache. */
import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
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
  // An environment holds its own path: one that was copied from elsewhere does not run.
  const whole = join(folder, "whole");
  if ((await readFile(whole, "utf8").catch(() => null)) === folder) return path;
  await mkdir(cacheFolder(process.env), { recursive: true });
  await rm(folder, { recursive: true, force: true });
  const made = await run("python3", ["-m", "venv", folder]).catch(() => null);
  if (made === null) return null;
  await run(join(folder, "bin", "python"), ["-m", "pip", "install", "--quiet", requirement]);
  await writeFile(whole, folder);
  return path;
}
