/** What a client that comes back learns of the list: nothing that was committed since is missed; more may come. */
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { deleteConversation, setTitle } from "../../db/conversations.ts";
import { listChanges, listCursor, type ListChanges } from "../../db/list-changes.ts";
import { chain, createConversation, ownDatabase, warned } from "./fixtures.ts";

const changedIn = (changes: ListChanges | null): readonly string[] =>
  changes?.changed.map(({ view }) => view.id) ?? [];

test("a cursor leads to what was made, changed and removed since; sub-agents are left out", async () => {
  const db = await ownDatabase();
  const [renamed, removed] = await Promise.all([1, 2].map(() => createConversation(db)));
  if (renamed === undefined || removed === undefined) throw new Error("two were made");
  const cursor = await listCursor(db);
  await setTitle(db, renamed.id, "Renamed");
  await deleteConversation(db, removed.id);
  const made = await createConversation(db);
  const child = await createConversation(db, {}, { config: { parentId: made.id } });
  await deleteConversation(db, child.id);
  const changes = await listChanges(db, cursor);
  expect(changedIn(changes)).toEqual(expect.arrayContaining([made.id, renamed.id]));
  expect(changedIn(changes)).not.toContain(child.id);
  expect(changes?.removed).toEqual([removed.id]);
  // Other transactions of the server may be open, which hold the cursor back for a moment.
  await expect
    .poll(async () => {
      const last = (await listChanges(db, cursor))?.cursor ?? "";
      return changedIn(await listChanges(db, last));
    })
    .toEqual([]);
});

test("a change that is committed late is not missed: the cursor waits for transactions that are still open", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db);
  const other = await createConversation(db);
  let cursor = "";
  await db.sql.begin(async (transaction) => {
    await transaction`update conversations set title = 'Late' where id = ${id}`;
    await commit(db, other.id, chain([{ notices: [warned] }], other.head));
    cursor = await listCursor(db);
  });
  expect(changedIn(await listChanges(db, cursor))).toContain(id);
});

test("an id that was taken again is removed and there", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db);
  const cursor = await listCursor(db);
  await deleteConversation(db, id);
  await createConversation(db, {}, { config: { id } });
  const changes = await listChanges(db, cursor);
  expect([changes?.removed, changedIn(changes)]).toEqual([[id], [id]]);
});

test("removals are remembered for a week; an older cursor, or one of another database, is not known", async () => {
  const db = await ownDatabase();
  const [first, second] = [await createConversation(db), await createConversation(db)];
  const cursor = await listCursor(db);
  await deleteConversation(db, first.id);
  await db.sql`update removals set removed_at = now() - interval '8 days'`;
  await deleteConversation(db, second.id);
  expect(await db.sql`select conversation_id as id from removals`).toEqual([{ id: second.id }]);
  const [xid = ""] = cursor.split(".");
  const weekAgo = Math.floor(Date.now() / 1_000) - 8 * 24 * 3_600;
  for (const unknown of [
    `${xid}.${weekAgo}`,
    `${BigInt(xid) + 1_000_000n}.${Math.floor(Date.now() / 1_000)}`,
    "1",
    "",
  ])
    expect(await listChanges(db, unknown), unknown).toBeNull();
});
