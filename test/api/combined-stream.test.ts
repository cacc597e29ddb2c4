/** One stream for the list and many conversations: docs/http.md, "One stream for many". */
import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { deleteConversation, setTitle } from "../../db/conversations.ts";
import type { Revision } from "../../protocol/commit.ts";
import { chain, createConversation, valueWith, warned } from "../db/fixtures.ts";
import { EventReader, type Received } from "./sse.ts";
import { problemOf, startApi, type Requests } from "./support.ts";

const first = await startApi({ heartbeatMs: 300 });
/** Another process of the same service. */
const second = await startApi({ databaseUrl: first.url, heartbeatMs: 300 });
await second.notifications.ready;
const { db } = first;

async function open(
  query = "",
  { get }: Requests = first,
): Promise<{ events: EventReader; streamId: string }> {
  const events = new EventReader(await get(`/api/stream${query}`));
  onTestFinished(() => events.cancel());
  const { data } = await events.until("stream.opened");
  return { events, streamId: String(data["streamId"]) };
}

const of = (id: string | null, name: string) => (event: Received) =>
  event.name === name && event.data["conversationId"] === id;
const listFact = (name: string, id: string) => (event: Received) =>
  of(null, name)(event) && (event.data["data"] as { id?: string }).id === id;

async function add(id: string, head: Revision): Promise<Revision> {
  const [next] = chain([{ notices: [warned] }], head);
  if (next === undefined) throw new Error("a chain of one has a head");
  await commit(db, id, [next]);
  return next;
}

test("conversations are opened and closed while it is open, each from its own cursor", async () => {
  const [one, two] = await Promise.all([
    createConversation(db, { notices: [warned] }),
    createConversation(db, { notices: [warned, warned] }),
  ]);
  const { events, streamId } = await open(`?conversation=${one.id}`);
  expect((await events.until(of(one.id, "snapshot"))).data).toMatchObject({
    cursor: "1",
    data: { lastEvent: 1 },
  });
  await events.until(of(one.id, "synced"));

  const change = { open: [{ id: two.id, cursor: "1" }] };
  expect((await first.send("POST", `/api/stream/${streamId}`, change)).status).toBe(204);
  expect((await events.until(of(two.id, "context.warned"))).data).toMatchObject({ cursor: "2" });
  await events.until(of(two.id, "synced"));

  const next = await add(one.id, one.head);
  expect((await events.until(of(one.id, "context.warned"))).data).toMatchObject({ cursor: "2" });
  await first.send("POST", `/api/stream/${streamId}`, { close: [one.id] });
  await add(one.id, next);
  const from = events.received.length;
  await add(two.id, two.head);
  await events.until(of(two.id, "context.warned"));
  expect(events.received.slice(from).filter(of(one.id, "context.warned"))).toEqual([]);
});

test("the request to open another conversation may reach another process than the one with the stream", async () => {
  const { id } = await createConversation(db);
  const { events, streamId } = await open();
  expect((await second.send("POST", `/api/stream/${streamId}`, { open: [{ id }] })).status).toBe(204);
  await events.until(of(id, "synced"));
});

test("a stream that has ended is not found, by any process", async () => {
  const { events, streamId } = await open();
  await events.cancel();
  for (const api of [first, second]) {
    const gone = await problemOf(await api.send("POST", `/api/stream/${streamId}`, { open: [] }));
    expect(gone).toMatchObject({ status: 404, code: "not_found" });
  }
});

test("a client that comes back, to whichever process, gets what it has missed of the list and of each conversation", async () => {
  const [one, renamed, removed] = await Promise.all([
    createConversation(db, {}, { title: "One" }),
    createConversation(db, {}, { title: "Before" }),
    createConversation(db, {}, { title: "Removed" }),
  ]);
  const { events } = await open(`?conversation=${one.id}`);
  await events.until(of(one.id, "synced"));
  const synced = events.received.find(of(null, "synced")) ?? (await events.until(of(null, "synced")));
  const cursor = String(synced.data["cursor"]);
  await events.cancel();

  await add(one.id, one.head);
  await setTitle(db, renamed.id, "After");
  await deleteConversation(db, removed.id);
  const made = await createConversation(db, {}, { title: "Made meanwhile" });

  const back = (await open(`?list=${cursor}&conversation=${one.id}:0`, second)).events;
  await back.until(of(null, "synced"));
  await back.until(of(one.id, "synced"));
  const facts = (name: string, id: string) => back.received.filter(listFact(name, id));
  expect(facts("conversation.changed", renamed.id)[0]?.data).toMatchObject({ data: { title: "After" } });
  // Facts may come twice.
  for (const found of [facts("conversation.changed", made.id), facts("conversation.deleted", removed.id)])
    expect(found.length).toBeGreaterThan(0);
  expect(back.received.filter(of(one.id, "context.warned"))).toHaveLength(1);
  expect(back.received.some(of(one.id, "snapshot"))).toBe(false);
});

test.each(["nonsense", "99999999999999.1", "1.1"])(
  "a list cursor that is not known, or too old, is answered with resync: %s",
  async (cursor) => {
    const { events } = await open(`?list=${cursor}`);
    await events.until(of(null, "resync"));
    const { data } = await events.until(of(null, "synced"));
    expect(data["cursor"]).toMatch(/^\d+\.\d+$/u);
  },
);

test("the list goes on live: new, changed and removed conversations, and the cursor moves on", async () => {
  const { events } = await open();
  const { data: synced } = await events.until(of(null, "synced"));
  const { id } = await createConversation(db, {}, { title: "Listed" });
  await events.until(listFact("conversation.changed", id));
  await setTitle(db, id, "Renamed");
  await events.until(listFact("conversation.changed", id));
  await deleteConversation(db, id);
  await events.until(listFact("conversation.deleted", id));
  // After some seconds later facts carry a later cursor.
  await expect
    .poll(async () => {
      const other = await createConversation(db);
      const { data } = await events.until(listFact("conversation.changed", other.id));
      return data["cursor"];
    })
    .not.toBe(synced["cursor"]);
});

test("an unknown conversation is reported as deleted, a removed one when it is removed; the stream goes on", async () => {
  const { id } = await createConversation(db);
  const unknown = randomUUID();
  const { events } = await open(`?conversation=${unknown}&conversation=${id}`);
  await events.until(of(unknown, "conversation.deleted"));
  await deleteConversation(db, id);
  await events.until(of(id, "conversation.deleted"));
  expect((await events.until("heartbeat")).data).toEqual({ everyMs: 300 });
});

test("a conversation that is opened before it begins, as a sub-agent may be, is told from its beginning", async () => {
  const id = randomUUID();
  const { events, streamId } = await open(`?conversation=${id}`);
  await events.until(of(id, "conversation.deleted"));
  const { head } = await createConversation(db, {}, { config: { id } });
  expect((await events.until(of(id, "snapshot"))).data).toMatchObject({ data: { conversation: { id } } });
  await events.until(of(id, "synced"));
  await add(id, head);
  await events.until(of(id, "context.warned"));
  // Nobody waits for one that was closed.
  const other = randomUUID();
  await first.send("POST", `/api/stream/${streamId}`, { open: [{ id: other }] });
  await events.until(of(other, "conversation.deleted"));
  await first.send("POST", `/api/stream/${streamId}`, { close: [other] });
  await createConversation(db, {}, { config: { id: other } });
  await events.until(listFact("conversation.changed", other));
  await events.until("heartbeat");
  expect(events.received.filter(of(other, "snapshot"))).toEqual([]);
});

test("a stream carries two hundred conversations; one more is refused by name", async () => {
  const { events, streamId } = await open();
  const rows = await Promise.all(
    Array.from({ length: 201 }, () => createConversation(db, { conversation: valueWith({}) })),
  );
  const ids = rows.map(({ id }) => id);
  for (let from = 0; from < ids.length; from += 40) {
    const some = ids.slice(from, from + 40).map((id) => ({ id }));
    expect((await first.send("POST", `/api/stream/${streamId}`, { open: some })).status).toBe(204);
  }
  expect((await events.until("stream.full")).data).toEqual({ conversationId: ids[200], most: 200 });
});

test("more changes than one request may hold, or an id of another form, are refused", async () => {
  const { streamId } = await open();
  const open41 = Array.from({ length: 41 }, () => ({ id: "x" }));
  for (const body of [{ open: open41 }, { open: [{ id: "a b" }] }, { open: "x" }, { opened: [] }]) {
    const refused = await problemOf(await first.send("POST", `/api/stream/${streamId}`, body));
    expect(refused).toMatchObject({ status: 422, code: "invalid_request" });
  }
  expect(await problemOf(await first.get("/api/stream?conversation=a%20b"))).toMatchObject({ status: 422 });
});
