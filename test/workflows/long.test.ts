/**
 * Long conversations in the running system. Histories with 2,000 messages and outputs of 200 KB, which fit into no
 * request, end with a summary, whose request fits the window (REQ-BED-020). Histories that fit go on as usual, out of
 * the provider's cache.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { answer, say, toolCall } from "../../local/scripted/script.ts";
import { hitRatio } from "../../local/scripted/usage.ts";
import { createConversation, userMessage, valueWith } from "../db/fixtures.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();

type History = {
  /** Messages in all; after the task each call is followed by its result. */
  readonly messages: number;
  /** Bytes of each result. */
  readonly outputBytes: number;
  readonly model: string;
};

/** An idle conversation with a long history, and the key of the script for its next requests. */
async function longConversation({ messages, outputBytes, model }: History) {
  const key = randomUUID();
  const tag = system.model.script(key, ({ body }) =>
    body.tools === undefined ? say("It was long.") : say("And so on."),
  );
  const { id } = await createConversation(
    system.db,
    {
      messages: [userMessage(1, `The task ${tag}`)],
      conversation: valueWith({ sequence: messages, hasMessages: true }),
    },
    { config: { model, host: system.config.toolHost, cwd: system.cwd } },
  );
  await system.db.sql`
    insert into messages (conversation_id, id, sequence_id, message_type, actor_kind, content, display_data, usage_data, created_at)
    select ${id}, 'm' || n, n,
      case when n % 2 = 0 then 'agent' else 'tool' end,
      case when n % 2 = 0 then 'llm_agent' else 'system' end,
      case when n % 2 = 0 then jsonb_build_array(jsonb_build_object(
        'type', 'tool_use', 'id', 'toolu_' || n, 'name', 'bash', 'input', jsonb_build_object('command', 'step ' || n)))
      else jsonb_build_array(jsonb_build_object(
        'toolCallId', 'toolu_' || (n - 1), 'name', 'bash', 'status', 'completed', 'durationMs', 5,
        'output', jsonb_build_array(jsonb_build_object(
          'type', 'text', 'text', 'step ' || n || ' ' || repeat(md5(n::text) || ' ', ${Math.ceil(outputBytes / 33)}::int))))) end,
      case when n % 2 = 0 then jsonb_build_object('requestId', 'r' || n, 'stopReason', 'tool_use', 'durationMs', 5) end,
      case when n % 2 = 0 then ${system.db.sql.json({ inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 })}::jsonb end,
      now()
    from generate_series(2, ${messages}::int) n`;
  return { key, conversation: new TestConversation(system, id) };
}

const refusals = () => system.model.requests.filter(({ refusal }) => refusal !== null);
const summaryRequests = (key: string) =>
  system.model
    .requestsOf(key)
    .filter((request) => request.refusal === null && request.body.tools === undefined);

test.each(["claude-haiku-4-5", "claude-opus-5-5"])(
  "2,000 messages with outputs of 200 KB, %s: the request for the summary fits",
  async (model) => {
    const { key, conversation } = await longConversation({ messages: 2_001, outputBytes: 200_000, model });
    await conversation.windUp();
    const { summary } = await conversation.untilState("context_exhausted");
    expect(summary).toBe("It was long.");
    const [request] = summaryRequests(key);
    const sent = JSON.stringify(request?.body.messages);
    // It holds the task, the end, and the number of messages left out.
    expect(sent).toContain("The task");
    expect(sent).toContain("step 2001 ");
    expect(sent).toMatch(/… 19\d\d messages left out …/);
    expect(refusals()).toEqual([]);
  },
);

test("a message to a history that fits into no request leads to the summary, not to endless errors", async () => {
  const history = { messages: 2_001, outputBytes: 200_000, model: "claude-opus-5-5" };
  const { key, conversation } = await longConversation(history);
  await conversation.send("And now?");
  const { summary } = await conversation.untilState("context_exhausted");
  expect(summary).toBe("It was long.");
  // The request that cannot fit is not even sent.
  expect(system.model.requestsOf(key)).toHaveLength(1);
  expect(refusals()).toEqual([]);
});

test("a message to a history that the provider finds too long leads to the summary as well", async () => {
  const history = { messages: 401, outputBytes: 10_000, model: "claude-haiku-4-5" };
  const { key, conversation } = await longConversation(history);
  await conversation.send("And now?");
  await conversation.untilState("context_exhausted");
  expect(refusals().map(({ refusal }) => refusal?.message)).toEqual([
    expect.stringMatching(/prompt is too long/),
  ]);
  expect(summaryRequests(key)).toHaveLength(1);
});

test("a turn after 2,000 messages that fit goes on as usual", async () => {
  const history = { messages: 2_001, outputBytes: 500, model: "claude-opus-5-5" };
  const { key, conversation } = await longConversation(history);
  await conversation.send("And now?");
  await conversation.untilState("idle");
  const [request] = system.model.requestsOf(key);
  expect(request?.refusal).toBeNull();
  expect(request?.body.messages).toHaveLength(2_001);
});

test("30 tool rounds read more than 95 % of what the cache could give", async () => {
  const key = randomUUID();
  const rounds = 30;
  const tag = system.model.script(key, (_, n) =>
    n <= rounds
      ? say(`Step ${n}.`, toolCall("bash", { command: `echo ${n}; seq 200` }))
      : n === rounds + 1
        ? answer([
            "Now many at once.",
            ...Array.from({ length: 25 }, () => toolCall("think", { thoughts: "so" })),
          ])
        : say("Done."),
  );
  const conversation = await TestConversation.open(system);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");
  await conversation.send("and again");
  await conversation.untilState("idle");
  const requests = system.model.requestsOf(key);
  expect(requests).toHaveLength(rounds + 3);
  const uses = requests.map(({ cacheUse }) => cacheUse ?? { read: 0, possible: 0 });
  expect(hitRatio(uses)).toBeGreaterThan(0.95);
  // Each round reads all that the round before it had sent, also across a turn of fifty blocks.
  expect(uses.slice(1).map(({ read, possible }) => possible - read)).toEqual(uses.slice(1).map(() => 0));
});
