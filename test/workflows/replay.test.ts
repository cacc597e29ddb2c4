/**
 * Recorded histories run through the present workflow code (rule 8). A change that would break old conversations fails
 * here. `npm run histories` records them anew.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type InjectedSinks, Worker } from "@temporalio/worker";
import { describe, expect, inject, test } from "vitest";
import type { WorkflowSinks } from "../../protocol/sinks.ts";
import "../support/quiet.ts";

const FOLDER = join(import.meta.dirname, "..", "histories");
/** A replay tells nothing. */
const NOBODY: InjectedSinks<WorkflowSinks> = { runs: { began: { fn: () => undefined } } };
const names = (await readdir(FOLDER)).filter((name) => name.endsWith(".json"));

describe("a recorded history replays", () => {
  test("at least six histories are recorded", () => expect(names.length).toBeGreaterThanOrEqual(6));

  test.each(names)("%s", async (name) => {
    const history: unknown = JSON.parse(await readFile(join(FOLDER, name), "utf8"));
    await Worker.runReplayHistory(
      { workflowBundle: { codePath: inject("bundlePath") }, sinks: NOBODY },
      history,
    );
  });
});
