/** Spans are stored in batches, go with their conversation, and are removed after some days. */
import { expect, test } from "vitest";
import { deleteConversation } from "../../db/conversations.ts";
import { deleteOldSpans, storeSpans } from "../../db/spans.ts";
import type { SpanRecord } from "../../observability/spans.ts";
import { createConversation, ownDatabase } from "./fixtures.ts";

const DAY = 24 * 60 * 60 * 1_000;

const spanOf = (conversationId: string, startedAt = Date.now()): SpanRecord => ({
  ...{ conversationId, cycleId: "m", operationId: "o", traceId: "t", spanId: "s", name: "request" },
  ...{ startedAt, endedAt: startedAt + 5, marks: [{ name: "sent", at: startedAt + 1 }] },
  attributes: { "bedrock.outcome": "response", "gen_ai.usage.output_tokens": 3 },
});

test("a batch with spans of a conversation that is gone stores the others, and a removal takes all", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db);
  await storeSpans(db, [spanOf(id), spanOf("gone"), spanOf(id)]);
  expect(await db.sql`select conversation_id from spans`).toHaveLength(2);
  await deleteConversation(db, id);
  expect(await db.sql`select from spans`).toHaveLength(0);
});

test("old spans are removed, however many, and young ones stay", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db);
  const old = Array.from({ length: 12_000 }, () => spanOf(id, Date.now() - 8 * DAY));
  await storeSpans(db, [...old, spanOf(id, Date.now() - 6 * DAY)]);
  expect(await deleteOldSpans(db, 7)).toBe(12_000);
  expect(await db.sql`select from spans`).toHaveLength(1);
});
