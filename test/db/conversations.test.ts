/** Reading conversations: one, the list, sub-agents; and renaming and removal. */
import { describe, expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import {
  children,
  conversationExists,
  deleteConversation,
  InvalidCursor,
  type Listing,
  listConversations,
  setTitle,
  versionOf,
} from "../../db/conversations.ts";
import { lastEventOf, readEvents } from "../../db/events.ts";
import { getImage, putImage } from "../../db/images.ts";
import { readMessages } from "../../db/messages.ts";
import { getConversation, readSnapshot } from "../../db/views.ts";
import type { ImageBlock } from "../../machine/message.ts";
import {
  chain,
  createConversation,
  newId,
  queued,
  ownDatabase,
  testDatabase,
  userMessage,
  valueWith,
} from "./fixtures.ts";

const all: Listing = { archived: "all", q: "", limit: 100, cursor: null };

describe("one conversation", () => {
  test("has the shape of the HTTP contract", async () => {
    const db = await testDatabase();
    const waiting = queued("later");
    const { id, head } = await createConversation(
      db,
      {
        at: "2024-05-06T07:08:09.123Z",
        conversation: valueWith({
          state: { kind: "error", message: "no", errorKind: "network" },
          mode: "restricted",
          queue: [waiting],
          queueHeld: "errors",
          usage: {
            inputTokens: 700,
            outputTokens: 50,
            cacheReadTokens: 30,
            cacheCreationTokens: 20,
            contextUsed: 800,
            contextWindow: 1000,
          },
        }),
      },
      { title: "A title", config: { sandbox: { kind: "available", abi: 7 } } },
    );
    const next = await createConversation(db, {}, { config: { continuedFrom: id } });
    await commit(db, id, chain([{ at: "2024-05-06T07:08:10.000Z", conversation: head.conversation }], head));
    expect(await getConversation(db, id)).toEqual({
      id,
      slug: "a-title",
      title: "A title",
      cwd: "/home/me/app",
      host: "laptop",
      model: "some-model",
      scripted: false,
      mode: "restricted",
      initialMode: "unrestricted",
      sandbox: { kind: "available", abi: 7 },
      state: { kind: "error", message: "no", errorKind: "network" },
      queue: [waiting],
      queueHeld: "errors",
      spent: { tokens: 0, dollars: 0 },
      usage: {
        inputTokens: 700,
        outputTokens: 50,
        cacheReadTokens: 30,
        cacheCreationTokens: 20,
        contextUsed: 800,
        contextWindow: 1000,
        contextRatio: 0.8,
        warning: true,
      },
      parentId: null,
      continuedFrom: null,
      continuedTo: [next.id],
      userInitiated: true,
      archived: false,
      lastEvent: 0,
      createdAt: "2024-05-06T07:08:09.123Z",
      updatedAt: "2024-05-06T07:08:10.000Z",
    });
    expect(await getConversation(db, "unknown")).toBeNull();
  });

  test("has no warning below 80 %", async () => {
    const db = await testDatabase();
    const usage = { ...valueWith({}).usage, contextUsed: 799 };
    const { id } = await createConversation(db, { conversation: valueWith({ usage }) });
    expect((await getConversation(db, id))?.usage.warning).toBe(false);
  });

  test("a snapshot is the conversation and its last messages", async () => {
    const db = await testDatabase();
    const messages = [1, 2, 3].map((n) => userMessage(n, `message ${n}`));
    const { id } = await createConversation(db, { messages });
    const snapshot = await readSnapshot(db, id, 2);
    expect(snapshot).toEqual({
      conversation: await getConversation(db, id),
      messages: messages.slice(1),
      lastEvent: 3,
    });
    expect(await readSnapshot(db, "unknown", 2)).toBeNull();
  });
});

describe("the list", () => {
  test("is newest first, page by page, each conversation once, whatever is created meanwhile", async () => {
    const db = await ownDatabase();
    const ids: string[] = [];
    // Pairs share a time.
    for (let n = 0; n < 10; n += 1) {
      const at = new Date(1_700_000_000_000 + Math.floor(n / 2)).toISOString();
      ids.push((await createConversation(db, { at }, { config: { id: `c${n}` } })).id);
    }
    const pages: string[][] = [];
    let cursor: string | null = null;
    do {
      const page = await listConversations(db, { ...all, limit: 3, cursor });
      pages.push(page.conversations.map((conversation) => conversation.id));
      cursor = page.nextCursor;
      await createConversation(db);
    } while (cursor !== null);
    expect(pages.map((page) => page.length)).toEqual([3, 3, 3, 1]);
    expect(pages.flat()).toEqual(ids.reverse());
  });

  test("a last page that is full has no cursor", async () => {
    const db = await ownDatabase();
    for (let n = 0; n < 2; n += 1) await createConversation(db);
    expect((await listConversations(db, { ...all, limit: 2 })).nextCursor).toBeNull();
  });

  test("leaves out sub-agents, and filters by the archived flag", async () => {
    const db = await ownDatabase();
    const { id: open } = await createConversation(db);
    const { id: archived } = await createConversation(db, { archived: true });
    await createConversation(db, {}, { config: { parentId: open, userInitiated: false } });
    const idsOf = async (listing: Partial<Listing>) =>
      (await listConversations(db, { ...all, ...listing })).conversations.map(({ id }) => id).sort();
    expect(await idsOf({ archived: "all" })).toEqual([open, archived].sort());
    expect(await idsOf({ archived: "false" })).toEqual([open]);
    expect(await idsOf({ archived: "true" })).toEqual([archived]);
  });

  test("finds part of a title in any case, and takes no character for a pattern", async () => {
    const db = await ownDatabase();
    for (const title of ["Fix the Build", "100% done_now\\", "Other"])
      await createConversation(db, {}, { title });
    const titlesOf = async (q: string) =>
      (await listConversations(db, { ...all, q })).conversations.map(({ title }) => title);
    expect(await titlesOf("the bu")).toEqual(["Fix the Build"]);
    expect(await titlesOf("0% d")).toEqual(["100% done_now\\"]);
    expect(await titlesOf("_now\\")).toEqual(["100% done_now\\"]);
    expect(await titlesOf("%")).toEqual(["100% done_now\\"]);
    expect(await titlesOf("\0")).toEqual([]);
  });

  test.each(["", "x", "bnVsbA", Buffer.from('["2024-99-01T00:00:00.000Z","a"]').toString("base64url")])(
    "refuses the cursor %j",
    async (cursor) => {
      const db = await testDatabase();
      await expect(listConversations(db, { ...all, cursor })).rejects.toThrow(InvalidCursor);
    },
  );

  test("the sub-agents of one conversation are listed oldest first", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(db);
    const kids: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      const at = new Date(1_700_000_000_000 + n).toISOString();
      kids.push(
        (await createConversation(db, { at }, { config: { parentId: id, userInitiated: false } })).id,
      );
    }
    const found = await children(db, id);
    expect(found.map((child) => child.id)).toEqual(kids);
    expect(found[0]).toMatchObject({ parentId: id, userInitiated: false });
  });
});

describe("a new title", () => {
  test("makes an event, keeps the slug, and is not replaced by the first message", async () => {
    const db = await ownDatabase();
    const { id, head } = await createConversation(db);
    expect(await setTitle(db, id, "Chosen\0")).toBe(1);
    await commit(db, id, chain([{ messages: [userMessage(1, "hello")] }], head));
    expect(await getConversation(db, id)).toMatchObject({
      title: "Chosen\ufffd",
      slug: "new-conversation",
      lastEvent: 2,
    });
    expect(await readEvents(db, id, 0, 1)).toEqual([
      { number: 1, name: "conversation.changed", data: { title: "Chosen\ufffd", archived: false } },
    ]);
  });

  test("of an unknown conversation is refused", async () => {
    const db = await testDatabase();
    expect(await setTitle(db, "unknown", "x")).toBeNull();
  });
});

test("an existing conversation has a row version, an unknown one has none", async () => {
  const db = await testDatabase();
  const { id, head } = await createConversation(db);
  await commit(db, id, chain([{}], head));
  expect(await versionOf(db, id)).toMatchObject({ revision: 2 });
  expect(await conversationExists(db, id)).toBe(true);
  expect(await versionOf(db, "unknown")).toBeNull();
  expect(await conversationExists(db, "unknown")).toBe(false);
  expect(await lastEventOf(db, "unknown")).toBeNull();
});

describe("removal", () => {
  test("deletes the conversation, its sub-agents and theirs, and nothing else", async () => {
    const db = await ownDatabase();
    const fields = {
      messages: [userMessage(1, "x")],
      conversation: valueWith({ queue: [queued("y")] }),
    };
    const { id } = await createConversation(db, fields);
    const child = await createConversation(db, fields, { config: { parentId: id } });
    const grandchild = await createConversation(db, fields, { config: { parentId: child.id } });
    const successor = await createConversation(db, fields, { config: { continuedFrom: id } });
    expect(await deleteConversation(db, id)).toBe(true);
    for (const gone of [id, child.id, grandchild.id]) {
      expect(await getConversation(db, gone)).toBeNull();
      expect(await readMessages(db, gone, { limit: 10 })).toEqual([]);
      expect(await readEvents(db, gone, 0, 10)).toEqual([]);
    }
    expect(await getConversation(db, successor.id)).toMatchObject({ continuedFrom: null });
    const [left] = await db.sql<{ messages: number; queue: number }[]>`
      select (select count(*) from messages) as messages, (select count(*) from queue) as queue`;
    expect(left).toEqual({ messages: 1, queue: 1 });
    expect(await deleteConversation(db, id)).toBe(false);
  });

  test("meant for an earlier conversation leaves a newer one with the same id", async () => {
    const db = await testDatabase();
    const { id } = await createConversation(db, { at: "2024-05-06T07:08:09.123Z" });
    expect(await deleteConversation(db, id, "2024-05-06T07:08:09.122Z")).toBe(false);
    expect(await conversationExists(db, id)).toBe(true);
    expect(await deleteConversation(db, id, "2024-05-06T07:08:09.123Z")).toBe(true);
    expect(await conversationExists(db, id)).toBe(false);
  });

  test("is final: a late commit does not bring the conversation back", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    await deleteConversation(db, id);
    expect(await commit(db, id, chain([{}], head))).toMatchObject({ confirmed: 0, diverged: true });
    expect(await conversationExists(db, id)).toBe(false);
  });
});

describe("images", () => {
  const image = (digit: string): ImageBlock => ({
    type: "image",
    hash: digit.repeat(64),
    mediaType: "image/png",
    width: 3,
    height: 2,
  });
  const bytes = new Uint8Array([0, 1, 2, 255]);

  test("are shown to the conversations whose messages or queue refer to them", async () => {
    const db = await testDatabase();
    for (const digit of ["a", "b", "c", "d"]) await putImage(db, image(digit), bytes);
    await putImage(db, image("a"), bytes);
    const { id } = await createConversation(db, {
      messages: [
        userMessage(1, "look", newId(), [image("a")]),
        {
          id: newId(),
          sequence: 2,
          cycleId: null,
          createdAt: new Date().toISOString(),
          type: "tool",
          actor: "system",
          content: [
            { toolCallId: "t", name: "read", status: "completed", output: [image("b")], durationMs: 1 },
          ],
        },
      ],
      conversation: valueWith({ queue: [queued("and", newId(), [image("c")])] }),
    });
    for (const digit of ["a", "b", "c"]) {
      const found = await getImage(db, id, image(digit).hash);
      expect(found?.mediaType).toBe("image/png");
      expect(Array.from(found?.bytes ?? [])).toEqual([0, 1, 2, 255]);
    }
    const { id: other } = await createConversation(db);
    expect(await getImage(db, id, image("d").hash)).toBeNull();
    expect(await getImage(db, other, image("a").hash)).toBeNull();
  });

  test("are deleted with the last conversation that refers to them, except those stored just now", async () => {
    const db = await ownDatabase();
    for (const digit of ["a", "b", "c"]) await putImage(db, image(digit), bytes);
    await db.sql`update images set created_at = now() - interval '2 hours' where hash <> ${image("c").hash}`;
    const first = await createConversation(db, {
      messages: [userMessage(1, "x", newId(), [image("a"), image("b")])],
    });
    await createConversation(db, { messages: [userMessage(1, "x", newId(), [image("b")])] });
    await deleteConversation(db, first.id);
    const left = await db.sql<{ hash: string }[]>`select hash from images order by hash`;
    expect(left.map((row) => row.hash)).toEqual([image("b").hash, image("c").hash]);
  });
});
