/** Event streams: REQ-BED-011, docs/http.md, "Events". */
import { expect, test } from "vitest";
import { ConversationFeed } from "../../api/events/conversation-feed.ts";
import { SseWriter } from "../../api/events/sse-writer.ts";
import { eventData } from "../../api/schemas/event.ts";
import { commit } from "../../db/commit.ts";
import { deleteConversation, setTitle } from "../../db/conversations.ts";
import { publishLive } from "../../db/live.ts";
import type { Revision } from "../../protocol/commit.ts";
import type { State } from "../../machine/conversation.ts";
import { chain, createConversation, type Fields, userMessage, valueWith, warned } from "../db/fixtures.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, startApi } from "./support.ts";

const started = await startApi();
const { get, db } = started;

const follow = async (id: string, query = "", headers: Record<string, string> = {}): Promise<EventReader> =>
  new EventReader(await get(`/api/conversations/${id}/events${query}`, { headers }));

/** Commits one more batch. */
async function add(id: string, head: Revision, fields: Fields): Promise<Revision> {
  const [next] = chain([fields], head);
  if (next === undefined) throw new Error("a chain of one has a head");
  await commit(db, id, [next]);
  return next;
}

/** The fields that a change of state commits. */
const into = (state: State): Fields => ({
  conversation: valueWith({ state }),
  notices: [{ name: "state.changed", data: { state, cycleId: "m1" } }],
});

const warnings = (count: number): Fields => ({ notices: Array.from({ length: count }, () => warned) });

test("a stream without a cursor sends a snapshot, synced, then each new event with its number", async () => {
  const { id, head } = await createConversation(db, {
    messages: [userMessage(1, "hello", "m1")],
    notices: [warned],
  });
  const events = await follow(id);
  const snapshot = await events.until("snapshot");
  expect(snapshot.id).toBeNull();
  expect(snapshot.data).toEqual({
    conversation: await bodyOf(await get(`/api/conversations/${id}`)),
    messages: (await bodyOf(await get(`/api/conversations/${id}/messages`)))["messages"],
    lastEvent: 2,
  });
  expect(await events.next()).toEqual({ name: "synced", id: null, data: { lastEvent: 2 } });
  const next = await add(id, head, { messages: [userMessage(2, "and now", "m2")] });
  expect(await events.next()).toMatchObject({
    name: "message.added",
    id: 3,
    data: { id: "m2", sequence: 2 },
  });
  await add(id, next, into({ kind: "idle" }));
  expect(await events.next()).toEqual({
    name: "state.changed",
    id: 4,
    data: { state: { kind: "idle" }, cycleId: "m1" },
  });
  await setTitle(db, id, "Renamed");
  expect(await events.next()).toMatchObject({
    name: "conversation.changed",
    id: 5,
    data: { title: "Renamed", archived: false },
  });
  await events.cancel();
});

test("a snapshot has the last 100 messages", async () => {
  const messages = Array.from({ length: 130 }, (_, index) => userMessage(index + 1, `${index + 1}`));
  const { id } = await createConversation(db, { messages });
  const events = await follow(id);
  const { data } = await events.until("snapshot");
  const shown = data["messages"] as { sequence: number }[];
  expect([shown.length, shown[0]?.sequence, shown.at(-1)?.sequence]).toEqual([100, 31, 130]);
  await events.cancel();
});

test.each([
  ["header", "", { "last-event-id": "3" }],
  ["query", "?after=3", {}],
  ["header before query", "?after=1", { "last-event-id": "3" }],
])("a cursor in the %s replays the missed events, then synced and new events", async (_, query, headers) => {
  const { id, head } = await createConversation(db, warnings(130));
  const events = await follow(id, query, headers);
  await events.until("synced");
  expect(events.received.slice(0, -1).map((event) => event.id)).toEqual(
    Array.from({ length: 127 }, (_, index) => index + 4),
  );
  expect(events.received.at(-1)?.data).toEqual({ lastEvent: 130 });
  await add(id, head, warnings(1));
  expect((await events.next())?.id).toBe(131);
  await events.cancel();
});

test("a cursor at the end replays nothing, a cursor at 0 everything", async () => {
  const { id } = await createConversation(db, warnings(2));
  const atEnd = await follow(id, "?after=2");
  expect(await atEnd.next()).toMatchObject({ name: "synced", data: { lastEvent: 2 } });
  await atEnd.cancel();
  const atStart = await follow(id, "?after=0");
  expect(await atStart.namesUntil("synced")).toEqual(["context.warned", "context.warned", "synced"]);
  await atStart.cancel();
});

test.each(["3", "99999999999999999999", "-1", "1.5", "abc", "0x1"])(
  "the unknown cursor %s gets a resync and a snapshot",
  async (cursor) => {
    const { id } = await createConversation(db, warnings(2));
    const events = await follow(id, `?after=${cursor}`);
    expect(await events.namesUntil("synced")).toEqual(["resync", "snapshot", "synced"]);
    await events.cancel();
  },
);

test("a removal sends conversation.deleted to the streams, those of sub-agents too, and ends them", async () => {
  const { id } = await createConversation(db);
  const child = await createConversation(db, {}, { config: { parentId: id, userInitiated: false } });
  const streams = await Promise.all([follow(id), follow(child.id), follow(id, "?after=0")]);
  for (const stream of streams) await stream.until("synced");
  await deleteConversation(db, id);
  for (const stream of streams) {
    expect(await stream.next()).toEqual({ name: "conversation.deleted", id: null, data: {} });
    expect(await stream.next()).toBeNull();
  }
});

/** Publishes a text where it belongs. */
const tell = (
  id: string,
  name: "text.delta" | "thinking.delta",
  requestId: string,
  text: string,
  offset = 0,
) =>
  publishLive(db, id, {
    event: { name, data: { requestId, index: name === "text.delta" ? 1 : 0, offset, text } },
    after: offset,
    again: false,
  });

/** Opens a stream that nobody reads. */
async function openUnread(id: string, heartbeatMs: number): Promise<SseWriter> {
  const writer = new SseWriter(undefined, heartbeatMs);
  await new ConversationFeed({ ...started, report: () => undefined }, id, writer).open(null);
  return writer;
}

const requesting: State = { kind: "llm_requesting", attempt: 1, lost: 0, requestId: "r1", retry: null };

test("live text has no id, and is sent only while its own request or tool runs", async () => {
  const { id, head } = await createConversation(db);
  const events = await follow(id);
  await events.until("synced");
  let last = await add(id, head, into(requesting));
  await tell(id, "thinking.delta", "r1", "hm");
  await tell(id, "text.delta", "r1", "a\nb");
  await tell(id, "text.delta", "another", "of an earlier request");
  const current = { id: "t1", name: "bash", input: {} };
  const round = { remaining: [], completed: [] };
  const running = { kind: "tool_executing" as const, operationId: "o1", current, startedAt: "", ...round };
  last = await add(id, last, into(running));
  await tell(id, "text.delta", "r1", "too late", 3);
  const output = { toolCallId: "t1", stream: "stdout" as const, offset: 0, text: "out" };
  await publishLive(db, id, { event: { name: "tool.output", data: output }, after: 0, again: false });
  await add(id, last, into({ kind: "idle" }));
  const late = { ...output, offset: 3, text: "too late" };
  await publishLive(db, id, { event: { name: "tool.output", data: late }, after: 3, again: false });
  await setTitle(db, id, "the end");
  await events.until("conversation.changed");
  const seen = events.received
    .filter((event) => event.name !== "heartbeat")
    .map(({ name, id, data }) => [name, id, data["text"]]);
  expect(seen.slice(2)).toEqual([
    ["state.changed", 1, undefined],
    ["thinking.delta", null, "hm"],
    ["text.delta", null, "a\nb"],
    ["state.changed", 2, undefined],
    ["tool.output", null, "out"],
    ["state.changed", 3, undefined],
    ["conversation.changed", 4, undefined],
  ]);
  await events.cancel();
});

test("a client that comes in the middle of an answer asks for the text from its beginning, and gets it once", async () => {
  const { id, head } = await createConversation(db);
  await add(id, head, into(requesting));
  const asked: string[] = [];
  const stop = started.notifications.onOrder((order) => {
    if (order.kind === "tell_again") asked.push(order.conversationId);
  });
  const streams = [await follow(id), await follow(id, "?after=1"), await follow(id, "?after=0")];
  for (const stream of streams) await stream.until("synced");
  await expect.poll(() => asked).toContain(id);
  // What comes before the answer to its question does not follow from what it has.
  await tell(id, "text.delta", "r1", "more", 10);
  await publishLive(db, id, {
    event: { name: "text.delta", data: { requestId: "r1", index: 1, offset: 0, text: "0123456789more" } },
    after: 0,
    again: true,
  });
  await tell(id, "text.delta", "r1", "!", 14);
  for (const stream of streams) {
    expect((await stream.until("text.delta")).data).toMatchObject({ offset: 0, text: "0123456789more" });
    expect((await stream.until("text.delta")).data).toMatchObject({ offset: 14, text: "!" });
    await stream.cancel();
  }
  stop();
});

test("an idle stream sends heartbeats as events, which say when a silent connection is dead", async () => {
  const { db, get } = await startApi({ heartbeatMs: 300 });
  const { id } = await createConversation(db);
  const events = new EventReader(await get(`/api/conversations/${id}/events`));
  expect(await events.until("heartbeat")).toEqual({ name: "heartbeat", id: null, data: { everyMs: 300 } });
  await events.cancel();
});

test("a client that stops reading is disconnected, and another one on the same conversation is not affected", async () => {
  const { id, head } = await createConversation(db);
  await add(id, head, into(requesting));
  const slow = await openUnread(id, 60_000);
  const reader = slow.readable.getReader();
  // It reads the snapshot and `synced`, and nothing after that.
  await reader.read();
  await reader.read();
  const events = await follow(id);
  await events.until("synced");
  const text = "x".repeat(64 * 1024);
  let received = 0;
  for (let sent = 0; sent < 40; sent++) {
    await tell(id, "text.delta", "r1", text, sent * text.length);
    while (received < (sent + 1) * text.length) {
      received += String((await events.until("text.delta")).data["text"]).length;
    }
  }
  await slow.closed;
  expect(slow.waiting).toBe(0);
  expect(received).toBe(40 * text.length);
  await events.cancel();
});

test("a client that does not read the snapshot is disconnected after two heartbeats", async () => {
  const { id } = await createConversation(db);
  const slow = await openUnread(id, 20);
  await slow.closed;
  expect(slow.waiting).toBe(0);
});

test("the list stream reports new, renamed, archived, working and removed conversations, but no sub-agents", async () => {
  const list = new EventReader(await get("/api/events"));
  expect(await list.next()).toMatchObject({ name: "synced" });
  const { id, head } = await createConversation(db, {}, { title: "Listed" });
  const ofThis = (name: string) => list.until((event) => event.name === name && event.data["id"] === id);
  expect((await ofThis("conversation.changed")).data).toMatchObject({ id, title: "Listed", archived: false });
  expect((await ofThis("state.changed")).data).toMatchObject({ id, state: { kind: "idle" } });
  const child = await createConversation(db, {}, { config: { parentId: id, userInitiated: false } });
  const next = await add(id, head, into(requesting));
  const working = (await ofThis("state.changed")).data;
  expect(working).toEqual({ id, ...eventData["state.changed"].parse(working) });
  expect(working).toMatchObject({ state: { kind: "llm_requesting" } });
  await setTitle(db, id, "Renamed");
  expect((await ofThis("conversation.changed")).data).toMatchObject({ title: "Renamed" });
  await add(id, next, { archived: true });
  expect((await ofThis("conversation.changed")).data).toMatchObject({ archived: true });
  await deleteConversation(db, id);
  expect((await ofThis("conversation.deleted")).data).toEqual({ id });
  expect(list.received.some((event) => event.data["id"] === child.id)).toBe(false);
  await list.cancel();
});

test("streams end when the process ends", async () => {
  const own = await startApi();
  const { id } = await createConversation(own.db);
  const one = new EventReader(await own.get(`/api/conversations/${id}/events`));
  const all = new EventReader(await own.get("/api/events"));
  await Promise.all([one.until("synced"), all.until("synced")]);
  own.stop();
  expect([await one.next(), await all.next()]).toEqual([null, null]);
  const late = new EventReader(await own.get("/api/events"));
  await late.until("synced");
  expect(await late.next()).toBeNull();
});
