/** Owns: directories and contexts for the tests of tools. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ToolContext, ToolRun } from "../../tools/tool.ts";

/** An empty directory that is gone after the test. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "bedrock-tools-")));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

export async function makeContext(changes: Partial<ToolContext> = {}): Promise<ToolContext> {
  return {
    cwd: changes.cwd ?? (await temporaryDirectory()),
    mode: "unrestricted",
    signal: new AbortController().signal,
    ...changes,
  };
}

/** The text of a result. */
export const textOf = (run: ToolRun): string =>
  run.output.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");

/** Not there, or only its parent has not looked yet. */
export function isDead(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.startsWith("Z") === true;
  } catch {
    return true;
  }
}

/** Resolves when the condition holds; the test's own timeout is the limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
