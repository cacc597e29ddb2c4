import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { WRITING_TOOLS } from "../../machine/control-tools.ts";
import type { Json } from "../../machine/message.ts";
import { requestModeUpgrade, submitResult } from "../../tools/control.ts";
import { describeTools, runTool } from "../../tools/registry.ts";
import { callTool, makeContext, temporaryDirectory, textOf, toolsFor } from "./support.ts";

const names = (isSubAgent: boolean) => toolsFor({ isSubAgent }).map((tool) => tool.name);

describe("the tools of a conversation", () => {
  test("REQ-BED-009, 018: a sub-agent can submit, and neither upgrade nor spawn", () => {
    const standard = [
      "bash",
      "read",
      "write",
      "edit",
      "patch",
      "ls",
      "grep",
      "find",
      "keyword_search",
      "think",
    ];
    expect(names(false)).toEqual([...standard, "request_mode_upgrade", "spawn_agents"]);
    expect(names(true)).toEqual([...standard, "submit_result"]);
  });

  test("REQ-BED-017: descriptions are the same objects each time and explain Restricted mode", () => {
    expect(toolsFor({ isSubAgent: false })).toBe(toolsFor({ isSubAgent: false }));
    const [bash, , write] = toolsFor({ isSubAgent: false });
    expect(bash?.description).toMatch(/Restricted mode.*read.*no network.*request_mode_upgrade/s);
    expect(write?.description).toMatch(/Disabled in Restricted mode.*request_mode_upgrade/);
  });

  test("spawn_agents says how long a sub-agent may take that is given no time", () => {
    const [spawn] = describeTools({ subAgentTimeoutSeconds: 90 })({ isSubAgent: false }).slice(-1);
    expect(JSON.stringify(spawn?.inputSchema)).toContain("default 90, at most 86400");
  });

  test("every field of every input is described", () => {
    const described = (schema: unknown, at: string): void => {
      if (typeof schema !== "object" || schema === null) return;
      for (const [key, value] of Object.entries(schema)) {
        if (key === "properties")
          for (const [field, inner] of Object.entries(value as object))
            expect(inner, `${at}.${field}`).toHaveProperty("description");
        described(value, `${at}.${key}`);
      }
    };
    for (const { name, inputSchema } of toolsFor({ isSubAgent: false })) described(inputSchema, name);
  });

  test("REQ-PATCH-009: each tool that writes says that Restricted mode disables it, and is disabled there", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "a"), "old");
    const inputs: Readonly<Record<string, Json>> = {
      write: { path: "a", content: "new" },
      edit: { path: "a", oldText: "old", newText: "new" },
      patch: { path: "a", edits: [{ operation: "overwrite", content: "new" }] },
    };
    expect(Object.keys(inputs)).toEqual(WRITING_TOOLS);
    for (const [name, input] of Object.entries(inputs)) {
      const title = name.charAt(0).toUpperCase() + name.slice(1);
      expect(await callTool(name, cwd, input, { mode: "restricted" })).toEqual({
        status: "failed",
        text: `${title} tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.`,
      });
      expect(await readFile(join(cwd, "a"), "utf8")).toBe("old");
      expect(toolsFor({ isSubAgent: false }).find((tool) => tool.name === name)?.description).toMatch(
        /Disabled in Restricted mode; use request_mode_upgrade to request write access\.$/,
      );
      expect(await callTool(name, cwd, input)).toMatchObject({ status: "completed" });
      await writeFile(join(cwd, "a"), "old");
    }
  });

  test("REQ-BED-014: tools that read work in Restricted mode", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "a"), "text");
    for (const [name, input] of Object.entries({
      read: { path: "a" },
      ls: {},
      grep: { pattern: "text" },
      find: { pattern: "a" },
      keyword_search: { terms: ["text"] },
      think: { thought: "Why?" },
    })) {
      expect(await callTool(name, cwd, input, { mode: "restricted" })).toMatchObject({ status: "completed" });
    }
  });

  test("schemas are plain JSON Schemas of objects", () => {
    for (const tool of [...toolsFor({ isSubAgent: false }), submitResult]) {
      expect(tool.inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      expect(tool.inputSchema).not.toHaveProperty("$schema");
      expect(JSON.parse(JSON.stringify(tool.inputSchema))).toEqual(tool.inputSchema);
    }
    expect(toolsFor({ isSubAgent: false })[0]?.inputSchema).toMatchObject({ required: ["command"] });
    expect(submitResult.inputSchema).toMatchObject({ required: ["result"] });
  });

  test("request_mode_upgrade and submit_result have the names, fields and required fields of the design", () => {
    expect(requestModeUpgrade).toMatchObject({
      name: "request_mode_upgrade",
      description: expect.stringMatching(
        /^Request upgrade from Restricted to Unrestricted mode\. Only available in Restricted mode\. The user must approve the request/,
      ) as string,
    });
    expect(requestModeUpgrade.inputSchema).toEqual({
      type: "object",
      required: ["reason"],
      properties: {
        reason: { type: "string", description: "Explanation of why write access is needed", minLength: 1 },
      },
      additionalProperties: false,
    });
    expect(submitResult.name).toBe("submit_result");
    expect(submitResult.inputSchema).toEqual({
      type: "object",
      required: ["result"],
      properties: {
        result: { type: "string", description: "Final result to return to the parent conversation" },
        success: {
          type: "boolean",
          description: "Whether the task was completed successfully; default true",
        },
      },
      additionalProperties: false,
    });
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
    ["edit", { path: "x", oldText: "", newText: "y" }, /oldText/],
    ["edit", { path: "x", oldText: "a", newText: "\ud800" }, /half of a character/],
    ["patch", { path: "x", edits: [] }, /edits/],
    ["patch", { path: "x", edits: [{ operation: "delete" }] }, /edits/],
    ["patch", { path: "x", edits: [{ operation: "insert", afterLine: -1, text: "y" }] }, /afterLine/],
    ["grep", { pattern: "" }, /pattern/],
    ["grep", { pattern: "x", context: 11 }, /context/],
    ["find", {}, /pattern/],
    ["keyword_search", { terms: [] }, /terms/],
    ["keyword_search", { terms: [" "] }, /must be one line/],
    ["keyword_search", { terms: ["a\nb"] }, /must be one line/],
    ["think", {}, /thought/],
    ["ls", "nonsense", /Invalid input for ls/],
    ["ls", null, /Invalid input for ls/],
  ])("%s with %j is a failed result, not an exception", async (name, input, message) => {
    const run = await runTool(name, input, await makeContext());
    expect(run.status).toBe("failed");
    expect(textOf(run)).toMatch(message);
  });

  test("begins nothing after an abort", async () => {
    const run = await runTool("ls", {}, await makeContext({ signal: AbortSignal.abort() }));
    expect(run.status).toBe("interrupted");
  });
});
