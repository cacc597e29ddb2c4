/** A lost workflow begins again from the row: the loaded value equals the committed one (rule 10). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { setTitle } from "../../db/conversations.ts";
import { loadConversation } from "../../db/load.ts";
import { getConversation } from "../../db/views.ts";
import { conversation } from "./arbitraries.ts";
import {
  chain,
  createConversation,
  configOf,
  queued,
  testDatabase,
  toolMessage,
  userMessage,
  valueWith,
} from "./fixtures.ts";

test("any value comes back exactly as it was committed", async () => {
  const db = await testDatabase();
  const { id, head } = await createConversation(db);
  let last = head;
  await fc.assert(
    fc.asyncProperty(conversation, async (value) => {
      const [revision] = chain([{ conversation: value, awaits: null }], last);
      if (revision === undefined) throw new Error("a chain of one has a head");
      expect((await commit(db, id, [revision])).diverged).toBe(false);
      last = revision;
      const loaded = await loadConversation(db, id);
      expect(loaded?.conversation).toEqual(value);
      expect(loaded).toMatchObject({ revision: revision.number, revisionId: revision.id });
    }),
    { numRuns: 150 },
  );
});

test("the config comes back, with the archived flag and the last event", async () => {
  const db = await testDatabase();
  const parent = await createConversation(db);
  const config = {
    scripted: true,
    sandbox: { kind: "available" as const, abi: 7 },
    initialMode: "restricted" as const,
    parentId: parent.id,
    continuedFrom: parent.id,
    userInitiated: false,
  };
  const { id, head } = await createConversation(db, { archived: true }, { config });
  expect(await loadConversation(db, id)).toEqual({
    config: configOf(id, config),
    conversation: head.conversation,
    revision: 1,
    revisionId: head.id,
    restarts: 0,
    archived: true,
    title: { text: null, event: 1 },
    createdAt: (await getConversation(db, id))?.createdAt,
    lastEvent: 1,
    knownMessageIds: [],
    recentMessages: [],
  });
});

test("a title is loaded with the event that it is as new as, also when nobody chose it", async () => {
  const db = await testDatabase();
  const titleOf = async (id: string) => (await loadConversation(db, id))?.title;
  const { id } = await createConversation(db, { messages: [userMessage(1, "Why is it red?")] });
  expect(await titleOf(id)).toEqual({ text: "Why is it red?", event: 1 });
  expect(await setTitle(db, id, "Red")).toBe(2);
  expect(await titleOf(id)).toEqual({ text: "Red", event: 2 });
});

test("the requested ids are found among the messages and in the queue", async () => {
  const db = await testDatabase();
  const other = await createConversation(db, { messages: [userMessage(1, "x", "elsewhere")] });
  const { id } = await createConversation(db, {
    messages: [userMessage(1, "x", "delivered"), toolMessage(2, "call")],
    conversation: valueWith({ queue: [queued("y", "waiting")] }),
  });
  const loaded = await loadConversation(db, id, ["delivered", "unknown", "waiting", "elsewhere", "\0'"]);
  expect([...(loaded?.knownMessageIds ?? [])].sort()).toEqual(["delivered", "waiting"]);
  expect((await loadConversation(db, other.id, ["elsewhere"]))?.knownMessageIds).toEqual(["elsewhere"]);
});

test("the recent messages are the last 64 of the user, then the queue", async () => {
  const db = await testDatabase();
  const messages = Array.from({ length: 70 }, (_, n) => [
    userMessage(2 * n + 1, "x", `m${n}`),
    toolMessage(2 * n + 2, `call ${n}`),
  ]).flat();
  const { id } = await createConversation(db, {
    messages,
    conversation: valueWith({ queue: [queued("y", "q1"), { ...queued("z", "q2"), delivery: "steer" }] }),
  });
  expect((await loadConversation(db, id))?.recentMessages).toEqual([
    ...Array.from({ length: 64 }, (_, n) => ({
      messageId: `m${n + 6}`,
      sequence: 2 * n + 13,
      delivery: "direct",
    })),
    { messageId: "q1", sequence: null, delivery: "followUp" },
    { messageId: "q2", sequence: null, delivery: "steer" },
  ]);
});

test("an unknown conversation loads as null", async () => {
  const db = await testDatabase();
  expect(await loadConversation(db, "unknown", ["a"])).toBeNull();
});
