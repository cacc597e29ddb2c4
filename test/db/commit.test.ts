/** The fence (rules 1 to 3): what a commit applies, skips and refuses, and what it answers. REQ-BED-007. */
import { describe, expect, test } from "vitest";
import { takeBackOrder } from "../../db/claims.ts";
import { commit, commitAndRead } from "../../db/commit.ts";
import { lastEventOf, readEvents } from "../../db/events.ts";
import { loadConversation } from "../../db/load.ts";
import { readMessages } from "../../db/messages.ts";
import { getConversation } from "../../db/views.ts";
import { pack, type Revision } from "../../protocol/commit.ts";
import type { Json } from "../../machine/message.ts";
import {
  chain,
  createConversation,
  newId,
  configOf,
  queued,
  ownDatabase,
  testDatabase,
  toolMessage,
  userMessage,
  valueWith,
  warned,
} from "./fixtures.ts";

function three(): [Revision, Revision, Revision] {
  const [first, second, third] = chain([
    { messages: [userMessage(1, "one")], conversation: valueWith({ sequence: 1 }), awaits: "a" },
    {
      messages: [userMessage(2, "two")],
      notices: [warned],
      conversation: valueWith({ sequence: 2 }),
      awaits: "b",
    },
    { messages: [userMessage(3, "three")], conversation: valueWith({ sequence: 3 }), awaits: "c" },
  ]);
  if (first === undefined || second === undefined || third === undefined)
    throw new Error("three were asked for");
  return [first, second, third];
}

describe("a commit without a divergence", () => {
  test("revisions are applied in order, and the answer names the row's revision and operation", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    const createInput = { config: configOf(id), title: null };
    expect(await commit(db, id, revisions, createInput)).toEqual({
      confirmed: 3,
      revisionId: revisions[2].id,
      awaits: "c",
      restarts: 0,
      diverged: false,
    });
    expect((await readMessages(db, id, { limit: 10 })).map((m) => m.id)).toEqual(
      revisions.flatMap((revision) => revision.messages.map((m) => m.id)),
    );
    const loaded = await loadConversation(db, id);
    expect(loaded?.conversation).toEqual(revisions[2].conversation);
  });

  test("each message and then each notice becomes one event, numbered without gaps", async () => {
    const db = await testDatabase();
    const revisions = three();
    const id = newId();
    await commit(db, id, revisions.slice(0, 1), { config: configOf(id), title: null });
    await commit(db, id, revisions.slice(1));
    const events = await readEvents(db, id, 0, 100);
    expect(events.map(({ number, name }) => [number, name])).toEqual([
      [1, "message.added"],
      [2, "message.added"],
      [3, "context.warned"],
      [4, "message.added"],
    ]);
    expect(events[1]?.data).toEqual(revisions[1].messages[0]);
    expect(events[2]?.data).toEqual(warned.data);
    expect(await lastEventOf(db, id)).toBe(4);
  });

  test("a repeated commit changes nothing", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    const createInput = { config: configOf(id), title: null };
    const first = await commit(db, id, revisions, createInput);
    const second = await commit(db, id, revisions, createInput);
    expect(second).toEqual(first);
    expect(await lastEventOf(db, id)).toBe(4);
  });

  test("only the first claim of a dispatch attempt may perform; it may ask again, and a later attempt is valid", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    const createInput = { config: configOf(id), title: null };
    const ask = (dispatchAttempt: number, by: string) =>
      commit(db, id, revisions, createInput, { operationId: "c", dispatchAttempt, by, restarts: 0 }).then(
        ({ awaits }) => awaits,
      );
    const rivals = await Promise.all(["a", "b", "c"].map((by) => ask(0, by)));
    expect(rivals.filter((awaits) => awaits === "c")).toHaveLength(1);
    const winner = ["a", "b", "c"][rivals.indexOf("c")] ?? "";
    expect(await ask(0, winner)).toBe("c");
    expect(await ask(0, "d")).toBeNull();
    expect(await ask(1, "d")).toBe("c");
    expect(await ask(0, winner)).toBeNull();
    const other = { operationId: "old", dispatchAttempt: 9, by: "x", restarts: 0 };
    expect((await commit(db, id, revisions, createInput, other)).awaits).toBe("c");
  });

  test("an order that nobody has claimed is taken back: nobody can claim it any more, and the one after it is valid", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    const createInput = { config: configOf(id), title: null };
    await commit(db, id, revisions, createInput);
    const claim = (dispatchAttempt: number, by: string, operationId = "c") =>
      ({ operationId, dispatchAttempt, by, restarts: 0 }) as const;
    const ask = async (dispatchAttempt: number, by: string) =>
      (await commit(db, id, revisions, createInput, claim(dispatchAttempt, by))).awaits;
    expect(await takeBackOrder(db, id, claim(1, "first"))).toBe(true);
    expect(await takeBackOrder(db, id, claim(1, "first"))).toBe(true);
    expect(await ask(0, "late")).toBeNull();
    // The next order is lost, too.
    expect(await takeBackOrder(db, id, claim(3, "second"))).toBe(true);
    expect(await ask(2, "late")).toBeNull();
    expect(await ask(4, "worker")).toBe("c");
    expect(await takeBackOrder(db, id, claim(5, "third"))).toBe(false);
    expect(await ask(4, "worker")).toBe("c");
    expect(await takeBackOrder(db, id, claim(1, "other", "old"))).toBe(false);
  });

  test("an order that is claimed and taken back at once is one of both", async () => {
    const db = await testDatabase();
    for (let n = 0; n < 30; n++) {
      const id = newId();
      const revisions = three();
      const createInput = { config: configOf(id), title: null };
      await commit(db, id, revisions, createInput);
      const claim = { operationId: "c", dispatchAttempt: 0, by: "worker", restarts: 0 };
      const [isTaken, { awaits }] = await Promise.all([
        takeBackOrder(db, id, { ...claim, dispatchAttempt: 1, by: "workflow" }),
        commit(db, id, revisions, createInput, claim),
      ]);
      expect([isTaken, awaits]).toEqual(isTaken ? [true, null] : [false, "c"]);
    }
  });

  test("an operation dispatched before a restart of the system is not performed after it; its revisions are applied", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    const createInput = { config: configOf(id), title: null };
    const ask = (restarts: number, dispatchAttempt = 0) =>
      commit(db, id, revisions, createInput, { operationId: "c", dispatchAttempt, by: "me", restarts });
    await commit(db, id, revisions.slice(0, 2), createInput);
    await db.sql`update conversations set restarts = 1 where id = ${id}`;
    expect(await ask(0)).toMatchObject({ confirmed: 3, awaits: null, restarts: 1 });
    expect(await ask(0, 1)).toMatchObject({ awaits: null });
    expect(await ask(1)).toMatchObject({ awaits: "c" });
    expect((await loadConversation(db, id))?.restarts).toBe(1);
  });

  test("the claim that may perform the operation gets the stored messages after the last one it knows", async () => {
    const db = await testDatabase();
    const id = newId();
    const revisions = three();
    await commit(db, id, revisions, { config: configOf(id), title: null });
    const stored = await readMessages(db, id, { limit: 10 });
    const [first] = stored;
    if (first === undefined) throw new Error("three were stored");
    const ask = (
      lastRead: { readonly id: string; readonly sequence: number },
      by = "me",
      operationId = "c",
    ) =>
      commitAndRead(db, id, pack(revisions), {
        createInput: null,
        claim: { operationId, dispatchAttempt: 0, by, restarts: 0 },
        lastRead,
      });
    expect((await ask(first)).newMessages).toEqual(stored.slice(1));
    expect((await ask({ id: "another", sequence: 1 })).newMessages).toBeNull();
    expect((await ask(first, "somebody else")).newMessages).toBeNull();
    expect((await ask(first, "me", "another")).newMessages).toBeNull();
    expect((await ask({ id: stored[2]?.id ?? "", sequence: 3 })).newMessages).toEqual([]);
  });

  test("more than 100 new messages are not part of the answer", async () => {
    const db = await testDatabase();
    const id = newId();
    const messages = Array.from({ length: 102 }, (_, n) => userMessage(n + 1, "x"));
    const revisions = chain([{ messages, conversation: valueWith({ sequence: 102 }), awaits: "c" }]);
    const createInput = { config: configOf(id), title: null };
    const ask = (sequence: number) => {
      const lastRead = { id: messages[sequence - 1]?.id ?? "", sequence };
      const claim = { operationId: "c", dispatchAttempt: 0, by: "me", restarts: 0 };
      return commitAndRead(db, id, pack(revisions), { createInput, claim, lastRead });
    };
    expect((await ask(1)).newMessages).toBeNull();
    expect((await ask(2)).newMessages).toHaveLength(100);
  });

  test("carried revisions that the row has are skipped, the others are applied", async () => {
    const db = await testDatabase();
    const id = newId();
    const [first, second, third] = three();
    await commit(db, id, [first], { config: configOf(id), title: null });
    expect(await commit(db, id, [first, second])).toMatchObject({ confirmed: 2, diverged: false });
    expect(await commit(db, id, [first, second, third])).toMatchObject({ confirmed: 3, diverged: false });
    expect(await readMessages(db, id, { limit: 10 })).toHaveLength(3);
  });

  test("a late commit changes nothing and is answered with what the row awaits now", async () => {
    const db = await testDatabase();
    const id = newId();
    const [first, second, third] = three();
    await commit(db, id, [first, second, third], { config: configOf(id), title: null });
    expect(await commit(db, id, [first, second])).toEqual({
      confirmed: 3,
      revisionId: third.id,
      awaits: "c",
      restarts: 0,
      diverged: false,
    });
    expect(await lastEventOf(db, id)).toBe(4);
  });

  test("the queue is replaced when it differs", async () => {
    const db = await testDatabase();
    const [one, two] = [queued("one"), { ...queued("two"), delivery: "steer" as const }];
    const { id, head } = await createConversation(db, { conversation: valueWith({ queue: [one, two] }) });
    const queueNow = async () => (await getConversation(db, id))?.queue;
    expect(await queueNow()).toEqual([one, two]);
    const changed = { ...one, text: "one, withdrawn and sent anew" };
    const revisions = chain(
      [[one, two], [two, one], [two, changed], []].map((queue) => ({ conversation: valueWith({ queue }) })),
      head,
    );
    for (const revision of revisions) {
      await commit(db, id, [revision]);
      expect(await queueNow()).toEqual(revision.conversation.queue);
    }
  });

  test("archiving makes the event conversation.changed", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db, {}, { title: "A title" });
    await commit(db, id, chain([{ archived: true, notices: [warned] }, {}], head));
    expect((await getConversation(db, id))?.archived).toBe(true);
    expect((await readEvents(db, id, 0, 10)).map(({ name, data }) => [name, data])).toEqual([
      ["context.warned", warned.data],
      ["conversation.changed", { title: "A title", archived: true }],
    ]);
  });

  test("a commit without revisions is answered with the row's version", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db, { awaits: "x" });
    expect(await commit(db, id, [])).toEqual({
      confirmed: 1,
      revisionId: head.id,
      awaits: "x",
      restarts: 0,
      diverged: false,
    });
  });
});

describe("a commit diverges and writes nothing", () => {
  test("with a gap between the row and its revisions; the missing revision closes the gap", async () => {
    const db = await testDatabase();
    const id = newId();
    const [first, second, third] = three();
    await commit(db, id, [first], { config: configOf(id), title: null });
    expect(await commit(db, id, [third])).toEqual({
      confirmed: 1,
      revisionId: first.id,
      awaits: "a",
      restarts: 0,
      diverged: true,
    });
    expect(await readMessages(db, id, { limit: 10 })).toHaveLength(1);
    expect(await commit(db, id, [second])).toMatchObject({ confirmed: 2, diverged: false });
    expect(await commit(db, id, [third])).toMatchObject({ confirmed: 3, diverged: false });
  });

  test("with a gap among its revisions", async () => {
    const db = await testDatabase();
    const id = newId();
    const [first, , third] = three();
    const createInput = { config: configOf(id), title: null };
    expect(await commit(db, id, [first, third], createInput)).toMatchObject({ confirmed: 0, diverged: true });
    expect(await loadConversation(db, id)).toBeNull();
  });

  test("with the row's revision under another id", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const rival = { ...head, id: "another" };
    const [next] = chain([{ messages: [userMessage(1, "lost?")] }], rival);
    expect(await commit(db, id, [rival])).toMatchObject({
      confirmed: 1,
      revisionId: head.id,
      diverged: true,
    });
    expect(await commit(db, id, next === undefined ? [] : [rival, next])).toMatchObject({
      confirmed: 1,
      diverged: true,
    });
    expect(await readMessages(db, id, { limit: 10 })).toEqual([]);
  });

  test("with a next revision that follows another one than the row's", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const next = chain([{ messages: [userMessage(1, "lost?")] }, {}], { number: 1, id: "another" });
    expect(await commit(db, id, next)).toEqual({
      confirmed: 1,
      revisionId: head.id,
      awaits: null,
      restarts: 0,
      diverged: true,
    });
    expect(await lastEventOf(db, id)).toBe(0);
  });

  test("with a mismatch further on, which takes back the revisions before it", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const [good] = chain([{ messages: [userMessage(1, "good")] }], head);
    const [bad] = chain([{}], { number: 2, id: "another" });
    if (good === undefined || bad === undefined) throw new Error("a chain of one has a head");
    expect(await commit(db, id, [good, bad])).toMatchObject({ confirmed: 1, diverged: true });
    expect(await readMessages(db, id, { limit: 10 })).toEqual([]);
  });

  test("without a row and a createInput, or with a createInput but without the first revision", async () => {
    const db = await testDatabase();
    const id = newId();
    const [, second] = three();
    const nothing = { confirmed: 0, revisionId: null, awaits: null, restarts: 0, diverged: true };
    expect(await commit(db, id, three())).toEqual(nothing);
    expect(await commit(db, id, [second], { config: configOf(id), title: null })).toEqual(nothing);
    expect(await loadConversation(db, id)).toBeNull();
  });

  test("for a sub-agent whose parent is gone", async () => {
    const db = await testDatabase();
    const id = newId();
    const config = configOf(id, { parentId: "gone", userInitiated: false });
    expect(await commit(db, id, three(), { config, title: null })).toMatchObject({
      confirmed: 0,
      diverged: true,
    });
  });
});

describe("createInput", () => {
  test("title and slug come from the given title", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(
      db,
      { messages: [userMessage(1, "hello")] },
      { title: "Fix the Flaky Test!" },
    );
    expect(await getConversation(db, id)).toMatchObject({
      title: "Fix the Flaky Test!",
      slug: "fix-the-flaky-test",
    });
  });

  test("without a title, the first line of the first message is the title", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(db, { messages: [userMessage(1, "\n  Why is it red?\nIt is.")] });
    expect(await getConversation(db, id)).toMatchObject({
      title: "Why is it red?",
      slug: "why-is-it-red",
    });
    expect((await readEvents(db, id, 0, 10)).map((event) => event.name)).toEqual(["message.added"]);
  });

  test("without a message either, a placeholder is the title until the first message with text", async () => {
    const db = await ownDatabase();
    const { id, head } = await createConversation(db);
    expect(await getConversation(db, id)).toMatchObject({ title: "New conversation" });
    const revisions = chain(
      [
        { messages: [userMessage(1, "")] },
        { messages: [userMessage(2, "Look around")] },
        { messages: [userMessage(3, "again")] },
      ],
      head,
    );
    for (const revision of revisions) await commit(db, id, [revision]);
    expect(await getConversation(db, id)).toMatchObject({
      title: "Look around",
      slug: "new-conversation",
    });
    const events = await readEvents(db, id, 0, 10);
    expect(
      events.filter((event) => event.name === "conversation.changed").map((event) => event.data),
    ).toEqual([{ title: "Look around", archived: false }]);
  });

  test("slugs are unique", async () => {
    const db = await ownDatabase();
    const slugs = new Set<string | undefined>();
    for (let n = 0; n < 5; n += 1) {
      const { id } = await createConversation(db, {}, { title: "Same" });
      slugs.add((await getConversation(db, id))?.slug);
    }
    expect(slugs.size).toBe(5);
    expect(slugs).toContain("same");
    for (const slug of slugs) expect(slug).toMatch(/^same(-[0-9a-f]+)?$/);
  });

  test("a continuation of a removed conversation is stored without a predecessor", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(db, {}, { config: { continuedFrom: "gone" } });
    expect((await loadConversation(db, id))?.config.continuedFrom).toBeNull();
  });

  test("a createInput is ignored when the row exists", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db, {}, { title: "First" });
    const createInput = { config: configOf(id, { cwd: "/elsewhere" }), title: "Second" };
    expect(await commit(db, id, [head], createInput)).toMatchObject({ confirmed: 1, diverged: false });
    expect(await getConversation(db, id)).toMatchObject({ title: "First", cwd: "/home/me/app" });
  });
});

test("text that Postgres cannot hold does not stop a conversation", async () => {
  const db = await testDatabase();
  const text = "a\0b\ud800c";
  const call = { id: "t\0", name: "ba\udc00sh", input: { "k\0": text } };
  const { id } = await createConversation(
    db,
    {
      messages: [userMessage(1, text), toolMessage(2, "t\0")],
      notices: [{ name: "context.exhausted", data: { summary: text, source: "model" } }],
      conversation: valueWith({
        queue: [queued(text)],
        state: {
          kind: "tool_executing",
          current: call,
          operationId: "o",
          startedAt: new Date().toISOString(),
          remaining: [],
          completed: [],
        },
      }),
    },
    { title: text },
  );
  const stored = "a\ufffdb\ufffdc";
  const view = await getConversation(db, id);
  expect(view).toMatchObject({
    title: stored,
    queue: [{ text: stored }],
    state: { current: { id: "t\ufffd", name: "ba\ufffdsh", input: { "k\ufffd": stored } } },
  });
  expect((await readMessages(db, id, { limit: 1 }))[0]?.content).toEqual([{ type: "text", text: stored }]);
});

test("a tool input that is nested deeply does not stop a conversation", async () => {
  const db = await testDatabase();
  let input: Json = [];
  for (let depth = 0; depth < 1500; depth += 1) input = [input];
  const content = [{ type: "tool_use", id: "t", name: "bash", input }];
  const { id } = await createConversation(db, {
    messages: [
      {
        id: newId(),
        sequence: 1,
        cycleId: null,
        createdAt: new Date().toISOString(),
        type: "agent",
        actor: "llm_agent",
        content,
        usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 },
        display: { requestId: "r", stopReason: "tool_use", durationMs: 1 },
      },
    ],
  });
  expect((await readMessages(db, id, { limit: 1 }))[0]?.content).toEqual(content);
});
