/** One process's notifications reach another, which learns of a lost connection and so of lost notifications. */
import { describe, expect, onTestFinished, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { deleteConversation, setTitle } from "../../db/conversations.ts";
import { publishLive, type LivePiece } from "../../db/live.ts";
import { type CommitNotice, listen, type Notifications } from "../../db/notifications.ts";
import { chain, createConversation, ownDatabase, userMessage, warned } from "./fixtures.ts";

async function listening(url: string): Promise<Notifications & { commits: CommitNotice[] }> {
  const notifications = listen(url);
  onTestFinished(() => notifications.close());
  const commits: CommitNotice[] = [];
  notifications.onCommit((notice) => commits.push(notice));
  await notifications.ready;
  return { ...notifications, commits };
}

describe("commits", () => {
  test("are notified once for each call that applied something, with the revision and the last event", async () => {
    const db = await ownDatabase();
    const { commits } = await listening(db.url);
    const { id, head } = await createConversation(db);
    const revisions = chain([{ messages: [userMessage(1, "x")] }, { notices: [warned] }], head);
    await commit(db, id, revisions);
    await commit(db, id, revisions);
    const { id: child } = await createConversation(db, {}, { config: { parentId: id } });
    await setTitle(db, id, "Title");
    await deleteConversation(db, id);
    const own = { conversationId: id, parentId: null };
    await expect.poll(() => commits).toHaveLength(6);
    expect(commits).toEqual([
      { kind: "committed", ...own, revision: 1, lastEvent: 0 },
      { kind: "committed", ...own, revision: 3, lastEvent: 3 },
      { kind: "committed", conversationId: child, parentId: id, revision: 1, lastEvent: 0 },
      { kind: "committed", ...own, revision: 3, lastEvent: 4 },
      { kind: "deleted", ...own },
      { kind: "deleted", conversationId: child, parentId: id },
    ]);
  });

  test("are not passed to a callback that was removed", async () => {
    const db = await ownDatabase();
    const notifications = await listening(db.url);
    const heard: CommitNotice[] = [];
    const remove = notifications.onCommit((notice) => heard.push(notice));
    remove();
    await createConversation(db);
    await expect.poll(() => notifications.commits).toHaveLength(1);
    expect(heard).toEqual([]);
  });

  test("are notified again after a lost connection, and the reconnection is reported", async () => {
    const db = await ownDatabase();
    const notifications = await listening(db.url);
    let reconnects = 0;
    notifications.onReconnect(() => (reconnects += 1));
    const ended = await db.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query ilike 'listen%'`;
    expect(ended).toHaveLength(1);
    await expect.poll(() => reconnects, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
    const { id } = await createConversation(db);
    await expect.poll(() => notifications.commits.map((notice) => notice.conversationId)).toEqual([id]);
    await publishLive(db, id, LINE);
    const lives: LivePiece[] = [];
    notifications.onLive((_, event) => lives.push(event));
    await publishLive(db, id, LINE);
    await expect.poll(() => lives).toContainEqual(LINE);
  });
});

const LINE: LivePiece = {
  event: { name: "tool.output", data: { toolCallId: "t", stream: "stdout", offset: 7, text: "line\n" } },
  after: 5,
  again: true,
};

describe("live events", () => {
  test("arrive in order", async () => {
    const db = await ownDatabase();
    const notifications = await listening(db.url);
    const heard: [string, LivePiece][] = [];
    notifications.onLive((conversationId, event) => heard.push([conversationId, event]));
    const thinking: LivePiece = {
      event: {
        name: "thinking.delta",
        data: { requestId: "r", index: 0, offset: 0, text: "a\0b\ud800\u{1f600}" },
      },
      after: 0,
      again: false,
    };
    await publishLive(db, "c", LINE);
    await publishLive(db, "c", LINE);
    await publishLive(db, "d", thinking);
    await expect.poll(() => heard).toHaveLength(3);
    expect(heard).toEqual([
      ["c", LINE],
      ["c", LINE],
      ["d", thinking],
    ]);
  });

  test.each([
    ["alike", "\n".repeat(20_000)],
    ["of many bytes", "😀".repeat(5_000)],
  ])("with more text than a notification holds arrive complete, in pieces: %s", async (_, text) => {
    const db = await ownDatabase();
    const notifications = await listening(db.url);
    const heard: LivePiece[] = [];
    notifications.onLive((_id, piece) => heard.push(piece));
    const event = { name: "text.delta", data: { requestId: "r", index: 1, offset: 10, text } } as const;
    await publishLive(db, "c", { event, after: 4, again: false });
    const whole = (): string => heard.map((piece) => piece.event.data.text).join("");
    await expect.poll(() => whole().length).toBe(text.length);
    expect(whole()).toBe(text);
    let [end, after] = [10, 4];
    for (const piece of heard) {
      expect([piece.event.data.offset, piece.after]).toEqual([end, after]);
      end = after = end + piece.event.data.text.length;
      expect(piece.event.data.text).not.toMatch(/\p{Surrogate}/u);
    }
  });
});
