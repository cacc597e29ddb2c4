/** Owns: directories and contexts for the tests of tools. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { Json } from "../../machine/message.ts";
import { DEFAULT_LIMITS } from "../../machine/context.ts";
import { describeTools, runTool } from "../../tools/registry.ts";
import type { ToolContext, ToolRun } from "../../tools/tool.ts";

export const toolsFor = describeTools(DEFAULT_LIMITS);

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
    isSubAgent: false,
    signal: new AbortController().signal,
    ...changes,
  };
}

/** Runs a tool in a directory. Returns its answer. */
export async function callTool(
  name: string,
  cwd: string,
  input: Json,
  changes: Partial<ToolContext> = {},
): Promise<{ readonly status: ToolRun["status"]; readonly text: string }> {
  const run = await runTool(name, input, await makeContext({ cwd, ...changes }));
  return { status: run.status, text: textOf(run) };
}

export const completion = (text: string) => ({ status: "completed", text });
export const failure = (pattern: RegExp) => ({
  status: "failed",
  text: expect.stringMatching(pattern) as string,
});

/** The text of a result. */
export const textOf = (run: ToolRun): string =>
  run.output.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
