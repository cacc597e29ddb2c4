import { expect, test } from "vitest";
import { MessageCache } from "../../activities/message-cache.ts";
import { commit } from "../../db/commit.ts";
import type { Message } from "../../machine/message.ts";
import { chain, createConversation, message, testDatabase, userMessage } from "../db/fixtures.ts";

/** A message with a diff that is much larger than its result. */
const written = (sequence: number): Message =>
  message(sequence, {
    type: "tool",
    actor: "system",
    content: [{ toolCallId: `t${sequence}`, name: "write", status: "completed", output: [], durationMs: 1 }],
    display: {
      diffs: [
        {
          ...{ path: "/a", change: "created", diff: "+x\n".repeat(10_000) },
          ...{ addedLines: 10_000, removedLines: 0, truncated: false },
        },
      ],
    },
  });

test("a worker keeps no diffs, and they do not count for the size of a history", async () => {
  const db = await testDatabase();
  const messages = [userMessage(1, "go"), written(2)];
  const { id, head } = await createConversation(db, { messages });
  const cache = new MessageCache(db);
  const read = await cache.read(id, cache.getCached(id), null);
  expect(read.messages.map((kept) => [kept.type, "display" in kept])).toEqual([
    ["user", true],
    ["tool", false],
  ]);
  const next = written(3);
  await commit(db, id, chain([{ messages: [next] }], head));
  const given = await cache.read(id, cache.getCached(id), [next]);
  expect(given.messages).toHaveLength(3);
  expect(given.messages[2]).not.toHaveProperty("display");
  expect(given.characters).toBeLessThan(2_000);
  expect(cache.getCached(id)).toEqual(given);
});
