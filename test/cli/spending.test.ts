/** `bedrock spending`, and how a limit on spending is told in a terminal (docs/spending.md). */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, toolCall } from "../../local/scripted/script.ts";
import { dayOf, NO_LIMITS, type SpendingLimits } from "../../protocol/spending.ts";
import { Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { startSystem } from "../support/system.ts";
import { run } from "./support.ts";

const MODEL = "claude-opus-4-8";
const system = await startSystem({ env: { MODEL, LIMIT_CONVERSATION_TOKENS: "150" } });

async function at(spendingLimits: SpendingLimits) {
  const api = startApiOn(system, { defaultModel: MODEL, spendingLimits });
  const { url } = await serveApi(api);
  return { person: new Person(api, system.cwd), here: { url, cwd: system.cwd } };
}

const usage = {
  ...{ input_tokens: 60, output_tokens: 40 },
  ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
};
const script = (): string =>
  system.model.script(randomUUID(), [
    answer(["Hello. ", toolCall("ls", {})], { usage }),
    answer(["Again. ", toolCall("ls", {})], { usage }),
  ]);

test("says what was spent today and by a conversation; a run that a limit ends says so, and so does what comes after", async () => {
  const { here } = await at({ ...NO_LIMITS, conversation: { tokens: 150, dollars: null } });
  const ended = await run(["run", "--json", `Go. ${script()}`], here);
  expect(ended.code).toBe(1);
  const report = JSON.parse(ended.stdout) as { readonly conversationId: string };
  const { conversationId: id } = report;
  const spent = { tokens: 200, dollars: 0.0026 };
  expect(report).toMatchObject({ spent, state: { errorKind: "spending_limit" } });
  expect((await run(["attach", id], here)).stderr).toContain(
    "This conversation has spent 200 tokens, and may spend 150 tokens.",
  );

  expect((await run(["spending", id], here)).stdout).toBe(
    "This conversation and its sub-agents: $0.002600, 200 tokens. Limit: 150 tokens.\n",
  );
  expect(JSON.parse((await run(["spending", id, "--json"], here)).stdout)).toEqual({
    conversationId: id,
    spent,
    limit: { tokens: 150, dollars: null },
  });
  expect((await run(["spending"], here)).stdout).toBe(
    `Today (${dayOf(new Date())} UTC), all conversations: $0.002600, 200 tokens. Limit: none.\n`,
  );

  const refused = await run(["send", id, "Go on."], here);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("raise LIMIT_CONVERSATION_TOKENS");

  // A server with the limit of a day.
  const strict = (await at({ ...NO_LIMITS, day: { tokens: null, dollars: 0.0026 } })).here;
  expect((await run(["spending"], strict)).stdout).toContain("Limit: $0.002600.");
  const late = await run(["run", "Another."], strict);
  expect(late.code).toBe(1);
  expect(late.stderr).toContain("Wait until 00:00 UTC, or raise LIMIT_DAY_DOLLARS.");
});

test("docs/spending.md names these commands", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "spending.md"), "utf8");
  expect([...page.matchAll(/^ *bedrock (spending\S*)/gm)]).toHaveLength(2);
});
