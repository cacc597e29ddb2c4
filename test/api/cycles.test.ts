/** `GET …/cycles`: the pages hold the cycles of the whole conversation. Not here: what a cycle is (test/machine/). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cycle as cycleSchema } from "../../api/schemas/cycle.ts";
import { type Cycle, foldCycles, viewOf } from "../../machine/cycles.ts";
import type { Message, MessageBody } from "../../machine/message.ts";
import { createConversation, message } from "../db/fixtures.ts";
import { bodyOf, problemOf, startApi } from "./support.ts";

const { get, db } = await startApi();

type Answer = { readonly cycles: Cycle[]; readonly between: string[] };
const cycles = async (id: string, query = ""): Promise<Answer> =>
  (await bodyOf(await get(`/api/conversations/${id}/cycles${query}`))) as unknown as Answer;

const text = [{ type: "text", text: "x" }] as const;
const user = (kind: "direct" | "steer" | "followUp"): MessageBody => ({
  type: "user",
  actor: "human",
  content: text,
  display: { kind },
});
const agent: MessageBody = {
  type: "agent",
  actor: "llm_agent",
  content: [
    { type: "text", text: "Look." },
    { type: "tool_use", id: "t1", name: "ls", input: { path: "." } },
  ],
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 },
  display: { requestId: "r", stopReason: "tool_use", durationMs: 5 },
};
const tool: MessageBody = {
  type: "tool",
  actor: "system",
  content: [{ toolCallId: "t1", name: "ls", status: "completed", output: text, durationMs: 7 }],
};
const note: MessageBody = { type: "note", actor: "system", content: text };
const stop: MessageBody = { type: "run_stop", actor: "system", content: [{ reason: "completed" }] };

const stored = (bodies: readonly MessageBody[]): Message[] =>
  bodies.map((body, index) => message(index + 1, body));

test("both views have their documented shape", async () => {
  const messages = stored([note, user("direct"), agent, tool, user("steer"), stop, note]);
  const { id } = await createConversation(db, { messages });
  const [before, root, output, result, steer, , after] = messages.map((each) => each.id);
  const steps = await cycles(id);
  expect(steps).toMatchObject({
    between: [before, after],
    cycles: [
      {
        id: root,
        root,
        reason: "completed",
        steps: [
          { kind: "user", messageId: root, delivery: "direct" },
          { kind: "ai_block", groups: [{ kind: "read", calls: [{ toolCallId: "t1", durationMs: 7 }] }] },
          { kind: "user", messageId: steer, delivery: "steer" },
        ],
      },
    ],
  });
  const rounds = await cycles(id, "?view=rounds");
  expect(rounds.cycles).toMatchObject([{ id: root, rounds: [{ input: [root], output, results: [result] }] }]);
  for (const shown of [...steps.cycles, ...rounds.cycles]) expect(cycleSchema.parse(shown)).toEqual(shown);
});

test("paging back by the first cycle's id gives every cycle once, and every message is accounted for", async () => {
  const body = fc.constantFrom(user("direct"), user("steer"), user("followUp"), agent, tool, note, stop);
  await fc.assert(
    fc.asyncProperty(
      fc.array(body, { maxLength: 500, size: "max" }),
      fc.integer({ min: 1, max: 100 }),
      async (bodies, limit) => {
        const messages = stored(bodies);
        const { id } = await createConversation(db, { messages });
        const whole = foldCycles(messages);
        const seen: Cycle[] = [];
        const between: string[] = [];
        for (let before = ""; ; before = `&before=${seen[0]?.id ?? ""}`) {
          const page = await cycles(id, `?limit=${limit}${before}`);
          seen.unshift(...page.cycles);
          between.unshift(...page.between);
          if (page.cycles.length < limit) break;
        }
        expect(seen).toEqual(whole.cycles.map((each) => viewOf(each, "steps")));
        expect(between).toEqual(whole.between);
      },
    ),
    { numRuns: 20 },
  );
});

test("a `before` sequence in the middle of a cycle does not cut that cycle", async () => {
  const messages = stored([
    user("direct"),
    stop,
    user("direct"),
    agent,
    tool,
    stop,
    user("direct"),
    agent,
    stop,
  ]);
  const { id } = await createConversation(db, { messages });
  const roots = (answer: Answer) => answer.cycles.map((each) => [each.root, each.reason]);
  const root = (index: number) => messages[index]?.id;
  expect(roots(await cycles(id, "?before=4"))).toEqual([
    [root(0), "completed"],
    [root(2), "completed"],
  ]);
  expect(roots(await cycles(id, "?before=7&limit=1"))).toEqual([[root(2), "completed"]]);
  expect(roots(await cycles(id, "?before=1"))).toEqual([]);
});

test("an unknown conversation is a 404 and an invalid query a 422; an empty conversation has no cycles", async () => {
  const { id } = await createConversation(db);
  expect(await cycles(id)).toEqual({ cycles: [], between: [] });
  expect(await problemOf(await get("/api/conversations/unknown/cycles"))).toMatchObject({ status: 404 });
  for (const query of ["view=columns", "limit=0", "limit=101", "before=unknown", "before=99999999999"]) {
    expect(await problemOf(await get(`/api/conversations/${id}/cycles?${query}`)), query).toMatchObject({
      status: 422,
      code: "invalid_request",
    });
  }
});
