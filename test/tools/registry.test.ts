import { describe, expect, test } from "vitest";
import type { Json } from "../../machine/message.ts";
import { requestModeUpgrade, spawnAgents, submitResult } from "../../tools/control.ts";
import { runTool, toolsFor } from "../../tools/registry.ts";
import { makeContext, textOf } from "./support.ts";

const names = (isSubAgent: boolean) => toolsFor({ isSubAgent }).map((tool) => tool.name);

describe("the tools of a conversation", () => {
  test("REQ-BED-009, 018: a sub-agent can submit, and neither upgrade nor spawn", () => {
    expect(names(false)).toEqual(["bash", "read", "write", "ls", "request_mode_upgrade"]);
    expect(names(true)).toEqual(["bash", "read", "write", "ls", "submit_result"]);
  });

  test("REQ-BED-017: descriptions are the same objects each time and explain Restricted mode", () => {
    expect(toolsFor({ isSubAgent: false })).toBe(toolsFor({ isSubAgent: false }));
    const [bash, , write] = toolsFor({ isSubAgent: false });
    expect(bash?.description).toMatch(/Restricted mode.*read.*no network.*request_mode_upgrade/s);
    expect(write?.description).toMatch(/Disabled in Restricted mode.*request_mode_upgrade/);
  });

  test("schemas are plain JSON Schemas of objects", () => {
    for (const tool of [...toolsFor({ isSubAgent: false }), requestModeUpgrade, spawnAgents, submitResult]) {
      expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      expect(tool.inputSchema).not.toHaveProperty("$schema");
      expect(JSON.parse(JSON.stringify(tool.inputSchema))).toEqual(tool.inputSchema);
    }
    expect(toolsFor({ isSubAgent: false })[0]?.inputSchema).toMatchObject({ required: ["command"] });
    expect(submitResult.inputSchema).toMatchObject({ required: ["result"] });
  });
});

describe("running a tool", () => {
  test.each<[string, Json, RegExp]>([
    ["no_such_tool", {}, /no tool named "no_such_tool"/],
    ["request_mode_upgrade", { reason: "x" }, /no tool named/],
    ["bash", {}, /Invalid input for bash:[^]*command/],
    ["bash", { command: 7 }, /expected string/],
    ["bash", { command: "ls", timeoutSeconds: 601 }, /timeoutSeconds/],
    ["bash", { command: "ls", cwd: "/" }, /cwd/],
    ["read", { path: "x", offset: 0 }, /offset/],
    ["write", { path: "x" }, /content/],
    ["ls", "nonsense", /Invalid input for ls/],
    ["ls", null, /Invalid input for ls/],
  ])("%s with %j is a failed result, not an exception", async (name, input, message) => {
    const run = await runTool(name, input, await makeContext());
    expect(run.status).toBe("failed");
    expect(textOf(run)).toMatch(message);
  });

  test("after an abort nothing begins", async () => {
    const run = await runTool("ls", {}, await makeContext({ signal: AbortSignal.abort() }));
    expect(run.status).toBe("interrupted");
  });
});
