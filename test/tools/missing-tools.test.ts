/** No text sends the model to a tool that its conversation does not have. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemPrompt } from "../../llm/system-prompt.ts";
import type { Json } from "../../machine/message.ts";
import { toModel } from "../../machine/wording.ts";
import { callTool, temporaryDirectory, toolsFor } from "./support.ts";

const namesOf = (isSubAgent: boolean) => toolsFor({ isSubAgent }).map(({ name }) => name);

/** Inputs with which a tool refuses or fails, by its name. */
const FAILING: Readonly<Record<string, readonly Json[]>> = {
  bash: [{ command: "touch a" }, { command: "git push --force" }, { command: "\0" }],
  read: [{ path: "none" }, { path: "." }, { path: "binary" }],
  write: [{ path: "a", content: "x" }],
  edit: [{ path: "a", oldText: "x", newText: "y" }],
  patch: [{ path: "a", edits: [{ operation: "overwrite", content: "x" }] }],
  ls: [{ path: "none" }, { path: "binary" }],
  grep: [{ pattern: "(" }, { pattern: "x", path: "none" }],
  find: [{ pattern: "*", path: "none" }],
  keyword_search: [{ terms: ["x"], path: "none" }],
  think: [],
};

describe.each([
  { reader: "a person's conversation", isSubAgent: false, lacks: ["submit_result"] },
  { reader: "a sub-agent", isSubAgent: true, lacks: ["request_mode_upgrade", "spawn_agents"] },
])("in $reader", ({ isSubAgent, lacks }) => {
  const missing = new RegExp(lacks.join("|"));

  test("these tools are missing", () => {
    const own = namesOf(isSubAgent);
    expect(namesOf(!isSubAgent).filter((name) => !own.includes(name))).toEqual(lacks);
  });

  test("the descriptions of the others do not name them", () => {
    for (const tool of toolsFor({ isSubAgent })) expect(JSON.stringify(tool)).not.toMatch(missing);
  });

  test("the system prompt does not name them, in either mode", () => {
    for (const initialMode of ["restricted", "unrestricted"] as const)
      expect(systemPrompt({ cwd: "/", isSubAgent, initialMode })).not.toMatch(missing);
  });

  test("the failures of the others in Restricted mode do not name them", async () => {
    const cwd = await temporaryDirectory();
    await writeFile(join(cwd, "binary"), "\0");
    const tools = namesOf(isSubAgent).filter((name) => name in FAILING);
    expect(tools).toEqual(Object.keys(FAILING));
    for (const name of tools) {
      for (const input of [...(FAILING[name] ?? []), {}, { path: "\0" }]) {
        const result = await callTool(name, cwd, input, { mode: "restricted", isSubAgent });
        if (name !== "ls") expect({ name, input, ...result }).toMatchObject({ status: "failed" });
        expect(result.text).not.toMatch(missing);
      }
    }
  });
});

test("of the machine's sentences, those for a sub-agent name no tool that it lacks", () => {
  const { nowRestricted, disabledInRestricted, unknownTool, invalidInput, timedOut, ...more } = toModel;
  const { upgradeApproved, upgradeDenied, nowUnrestricted, ...others } = more;
  // Only a person's conversation changes its mode.
  expect(nowRestricted).toContain("request_mode_upgrade");
  const sentences = [
    ...Object.values(others),
    disabledInRestricted("write", true),
    unknownTool("fly"),
    invalidInput("fly", "too high"),
    timedOut(1),
    ...[upgradeApproved, upgradeDenied, nowUnrestricted].map((sentence) => sentence("ada")),
  ];
  for (const sentence of sentences) expect(sentence).not.toMatch(/request_mode_upgrade|spawn_agents/);
});
