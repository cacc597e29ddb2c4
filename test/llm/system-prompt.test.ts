import { expect, test } from "vitest";
import { systemPrompt } from "../../llm/system-prompt.ts";

const MODES = ["restricted", "unrestricted"] as const;
const RESTRICTED = /In Restricted mode .*read-only.*no network.*tools that write files are disabled/;

test.for(MODES)(
  "REQ-BED-017: the system prompt names the directory, explains both modes, and says that the conversation began %s",
  (initialMode) => {
    const prompt = systemPrompt({ cwd: "/srv/app", isSubAgent: false, initialMode });
    expect(prompt).toContain("/srv/app");
    expect(prompt).toMatch(RESTRICTED);
    expect(prompt).toContain("In Unrestricted mode everything is allowed");
    expect(prompt).toContain("call request_mode_upgrade");
    const began = /This conversation began in (\w+) mode/.exec(prompt);
    expect(began?.[1]?.toLowerCase()).toBe(initialMode);
  },
);

test("REQ-BED-018: a sub-agent's names its one mode, and what that means for its task", () => {
  const restricted = systemPrompt({ cwd: "/", isSubAgent: true, initialMode: "restricted" });
  expect(restricted).toMatch(/You work in Restricted mode.*Do your task without writing/);
  expect(restricted).toMatch(RESTRICTED);
  expect(restricted).not.toContain("Unrestricted");
  const unrestricted = systemPrompt({ cwd: "/", isSubAgent: true, initialMode: "unrestricted" });
  expect(unrestricted).toMatch(/You work in Unrestricted mode.*everything is allowed/);
  expect(unrestricted).not.toContain(" Restricted");
  for (const prompt of [restricted, unrestricted]) expect(prompt).toContain("call submit_result");
});
