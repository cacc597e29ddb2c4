import { expect, test } from "vitest";
import { DEFAULT_MODEL, listModels, responseTokensOf, SCRIPTED_MODEL, windowOf } from "../../llm/models.ts";
import { systemPrompt } from "../../llm/system-prompt.ts";

test("the default is offered; the scripted provider has one model, labelled as such", () => {
  expect(listModels({ scripted: false }).map((model) => model.id)).toContain(DEFAULT_MODEL);
  expect(listModels({ scripted: false }).some((model) => model.scripted)).toBe(false);
  expect(listModels({ scripted: true })).toMatchObject([{ id: SCRIPTED_MODEL, scripted: true }]);
});

test("REQ-BED-022: windows differ; an unknown model gets the smallest", () => {
  const known = listModels({ scripted: false }).map((model) => windowOf(model.id));
  expect(new Set(known).size).toBeGreaterThan(1);
  expect(windowOf("something-new")).toBe(Math.min(...known));
  expect(windowOf("claude-sonnet-4-5-20250929")).toBe(windowOf("claude-sonnet-4-5"));
});

test("REQ-BED-019: an answer fits beside a context just below the threshold", () => {
  for (const { id } of listModels({ scripted: false })) {
    expect(responseTokensOf(id)).toBeLessThanOrEqual(windowOf(id) * 0.1);
  }
});

test("REQ-BED-017: the system prompt names the directory, explains both modes, and does not change with the mode", () => {
  const prompt = systemPrompt({ cwd: "/srv/app", isSubAgent: false });
  expect(prompt).toContain("/srv/app");
  expect(prompt).toMatch(/Restricted.*Unrestricted/s);
  expect(prompt).toContain("request_mode_upgrade");
  const forSubAgent = systemPrompt({ cwd: "/srv/app", isSubAgent: true });
  expect(forSubAgent).toContain("submit_result");
  expect(forSubAgent).not.toContain("request_mode_upgrade");
});
