/** Reading the stored messages: ranges, one by its id, and the ids of tool calls that were used. */
import { describe, expect, test } from "vitest";
import { findMessage, lastMessages, readMessages, usedToolCallIds } from "../../db/messages.ts";
import { readEvents } from "../../db/events.ts";
import type { Message, MessageBody } from "../../machine/message.ts";
import {
  createConversation,
  message,
  queued,
  testDatabase,
  toolMessage,
  userMessage,
  valueWith,
  warned,
} from "./fixtures.ts";

const NO_USAGE = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheCreationTokens: 4 };

test("every type of message comes back as it was stored", async () => {
  const db = await testDatabase();
  const text = [{ type: "text" as const, text: "t" }];
  const bodies: MessageBody[] = [
    { type: "user", actor: "human", content: text, display: { kind: "steer" } },
    {
      type: "agent",
      actor: "llm_agent",
      content: [
        { type: "thinking", thinking: "…", signature: "s" },
        { type: "tool_use", id: "t", input: { b: 1, a: [] } },
      ],
      usage: NO_USAGE,
      display: { requestId: "r", stopReason: "tool_use", durationMs: 12.5 },
    },
    {
      type: "tool",
      actor: "system",
      content: [{ toolCallId: "t", name: "bash", status: "failed", output: text, durationMs: 0 }],
    },
    { type: "system", actor: "system", content: text },
    { type: "note", actor: "system", content: text },
    { type: "error", actor: "system", content: [{ errorKind: "network", message: "m" }] },
    { type: "continuation", actor: "system", content: [{ summary: "s" }] },
    { type: "run_stop", actor: "system", content: [{ reason: "interrupted" }] },
  ];
  const messages: Message[] = bodies.map((body, n) => ({
    ...message(n + 1, body),
    cycleId: n === 3 ? null : "c",
  }));
  const { id } = await createConversation(db, { messages });
  expect(await readMessages(db, id, { limit: 100 })).toEqual(messages);
});

test("ranges are exclusive and ascending", async () => {
  const db = await testDatabase();
  const messages = Array.from({ length: 9 }, (_, n) => userMessage(n + 1, "x"));
  const { id } = await createConversation(db, { messages });
  const sequences = async (range: { after?: number; before?: number; limit: number }) =>
    (await readMessages(db, id, range)).map(({ sequence }) => sequence);
  expect(await sequences({ limit: 3 })).toEqual([1, 2, 3]);
  expect(await sequences({ after: 3, limit: 3 })).toEqual([4, 5, 6]);
  expect(await sequences({ before: 6, limit: 3 })).toEqual([3, 4, 5]);
  expect(await sequences({ after: 2, before: 8, limit: 3 })).toEqual([3, 4, 5]);
  expect(await sequences({ after: 9, limit: 3 })).toEqual([]);
  expect(await sequences({ before: 1, limit: 3 })).toEqual([]);
  expect((await lastMessages(db, id, 2)).map(({ sequence }) => sequence)).toEqual([8, 9]);
  expect(await readMessages(db, "unknown", { limit: 3 })).toEqual([]);
});

test("events are read after a given number, with their messages", async () => {
  const db = await testDatabase();
  const messages = [userMessage(1, "x"), userMessage(2, "y")];
  const { id } = await createConversation(db, { messages, notices: [warned] });
  expect(await readEvents(db, id, 0, 2)).toEqual([
    { number: 1, name: "message.added", data: messages[0] },
    { number: 2, name: "message.added", data: messages[1] },
  ]);
  expect(await readEvents(db, id, 2, 10)).toEqual([{ number: 3, ...warned }]);
  expect(await readEvents(db, id, 3, 10)).toEqual([]);
});

test("a message is found by its id, delivered or queued", async () => {
  const db = await testDatabase();
  const image = { type: "image" as const, hash: "a".repeat(64), mediaType: "image/png", width: 1, height: 1 };
  const { id } = await createConversation(db, {
    messages: [userMessage(1, "hello", "delivered", [image]), { ...toolMessage(2, "t"), id: "result" }],
    conversation: valueWith({ queue: [{ ...queued("later", "waiting"), delivery: "steer" }] }),
  });
  expect(await findMessage(db, id, "delivered")).toEqual({
    text: "hello",
    images: [image],
    delivery: "direct",
    sequence: 1,
  });
  expect(await findMessage(db, id, "waiting")).toEqual({
    text: "later",
    images: [],
    delivery: "steer",
    sequence: null,
  });
  expect(await findMessage(db, id, "result")).toBeNull();
  expect(await findMessage(db, id, "unknown")).toBeNull();
});

describe("tool call ids", () => {
  test("that this conversation has used are returned, in the order asked", async () => {
    const db = await testDatabase();
    const long = "x".repeat(10_000);
    await createConversation(db, { messages: [toolMessage(1, "elsewhere")] });
    const { id } = await createConversation(db, {
      messages: [
        userMessage(1, "a text that says d"),
        toolMessage(2, "a"),
        toolMessage(3, "b"),
        toolMessage(4, long),
      ],
    });
    expect(await usedToolCallIds(db, id, ["b", "elsewhere", "a", "c", "d", "\0", long])).toEqual([
      "b",
      "a",
      long,
    ]);
    expect(await usedToolCallIds(db, id, [])).toEqual([]);
  });

  test("are looked up by their index, however long the conversation is", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(db, {
      messages: Array.from({ length: 2000 }, (_, n) => toolMessage(n + 1, `call ${n}`)),
    });
    await db.sql`analyze messages`;
    const plan = await db.sql<{ "QUERY PLAN": string }[]>`explain
      select content -> 0 ->> 'toolCallId' as id from messages
      where conversation_id = ${id} and message_type = 'tool'
        and md5(content -> 0 ->> 'toolCallId') in ${db.sql(["0".repeat(32), "1".repeat(32)])}`;
    expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toMatch(/Index.* messages_tool_call/);
  });
});
