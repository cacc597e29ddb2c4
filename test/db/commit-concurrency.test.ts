/** Concurrent commits wait for one another, and event numbers stay in order and without gaps (rule 3). */
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { setTitle } from "../../db/conversations.ts";
import { readEvents } from "../../db/events.ts";
import { readMessages } from "../../db/messages.ts";
import { getConversation } from "../../db/views.ts";
import {
  chain,
  createConversation,
  newId,
  configOf,
  ownDatabase,
  testDatabase,
  userMessage,
  warned,
} from "./fixtures.ts";

test("four writers with the same revisions apply each revision once", async () => {
  const db = await testDatabase();
  const { id, head } = await createConversation(db, {}, { title: "A title" });
  const revisions = chain(
    Array.from({ length: 20 }, (_, n) => ({
      messages: [userMessage(n + 1, `message ${n}`)],
      notices: [warned],
    })),
    head,
  );
  const writers = Array.from({ length: 4 }, async () => {
    for (let n = 0; n < revisions.length; n += 1) {
      // A commit carries every revision that may be unconfirmed.
      const committed = await commit(db, id, revisions.slice(Math.max(0, n - 3), n + 1));
      expect(committed.diverged).toBe(false);
      expect(committed.confirmed).toBeGreaterThanOrEqual(n + 2);
    }
  });
  await Promise.all(writers);
  const events = await readEvents(db, id, 0, 100);
  expect(events.map((event) => event.number)).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
  expect(events.map((event) => event.name)).toEqual(
    revisions.flatMap(() => ["message.added", "context.warned"]),
  );
  expect((await readMessages(db, id, { limit: 100 })).map((message) => message.sequence)).toEqual(
    revisions.map((_, n) => n + 1),
  );
});

test("concurrent title changes and commits number their events without gaps", async () => {
  const db = await testDatabase();
  const { id, head } = await createConversation(db, {}, { title: "Before" });
  const revisions = chain(
    Array.from({ length: 15 }, () => ({ notices: [warned] })),
    head,
  );
  await Promise.all([
    ...Array.from({ length: 15 }, (_, n) => setTitle(db, id, `Title ${n}`)),
    (async () => {
      for (const revision of revisions) await commit(db, id, [revision]);
    })(),
  ]);
  const events = await readEvents(db, id, 0, 100);
  expect(events.map((event) => event.number)).toEqual(Array.from({ length: 30 }, (_, n) => n + 1));
  expect((await getConversation(db, id))?.lastEvent).toBe(30);
});

test("two concurrent creations make one row, and the loser's answer is a divergence", async () => {
  const db = await testDatabase();
  for (let round = 0; round < 10; round += 1) {
    const id = newId();
    const rivals = [chain([{}]), chain([{}])].flat();
    const results = await Promise.all(
      rivals.map((revision) => commit(db, id, [revision], { config: configOf(id), title: "Same" })),
    );
    const [winner, ...others] = results.filter((result) => !result.diverged);
    expect(others).toEqual([]);
    const loser = results.find((result) => result.diverged);
    expect(loser).toEqual({ ...winner, diverged: true });
  }
});

test("conversations created concurrently with one title have different slugs", async () => {
  const db = await testDatabase();
  const ids = Array.from({ length: 8 }, newId);
  const results = await Promise.all(
    ids.map((id) => commit(db, id, chain([{}]), { config: configOf(id), title: "Same" })),
  );
  expect(results.filter((result) => result.diverged)).toEqual([]);
  const views = await Promise.all(ids.map((id) => getConversation(db, id)));
  expect(new Set(views.map((view) => view?.slug)).size).toBe(8);
});

test("a commit waits for a connection that locks the row, and then checks against what that wrote", async () => {
  const db = await ownDatabase();
  const { id, head } = await createConversation(db);
  const [revision] = chain([{ notices: [warned] }], head);
  if (revision === undefined) throw new Error("a chain of one has a head");
  const order: string[] = [];
  const waiting = await db.sql.begin(async (transaction) => {
    await transaction`update conversations set revision_id = 'rewritten' where id = ${id}`;
    const committing = commit(db, id, [revision]).then((committed) => {
      order.push("committed");
      return committed;
    });
    // Polls until the commit waits for this transaction.
    for (;;) {
      // On another connection: within a transaction this view does not change.
      const blocked = await db.sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      if (blocked.length > 0) break;
    }
    order.push("released");
    return { committing };
  });
  expect(await waiting.committing).toMatchObject({ revisionId: "rewritten", diverged: true });
  expect(order).toEqual(["released", "committed"]);
});
