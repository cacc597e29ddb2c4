/** What was spent: added with the revision that has it, once, for the right conversation, day and model. */
import { describe, expect, test } from "vitest";
import { commit, commitAndRead } from "../../db/commit.ts";
import type { Database } from "../../db/connect.ts";
import { deleteConversation, listConversations } from "../../db/conversations.ts";
import { readEvents } from "../../db/events.ts";
import { readSums } from "../../db/spending.ts";
import { getConversation } from "../../db/views.ts";
import { NO_TOKENS } from "../../machine/conversation.ts";
import type { Charge } from "../../machine/message.ts";
import { viewUsage } from "../../machine/usage.ts";
import { pack, type Revision } from "../../protocol/commit.ts";
import { dayOf } from "../../protocol/spending.ts";
import { chain, configOf, createConversation, ownDatabase, testDatabase, valueWith } from "./fixtures.ts";

const DAY = "2026-03-14";
const NOON = `${DAY}T12:00:00.000Z`;

/** 10 tokens, and so many billionths of a dollar. */
const charge = (nanodollars: number | null): Charge => ({
  ...{ inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheCreationTokens: 4 },
  nanodollars,
});

const known = (tokens: number, nanodollars: number) => ({ tokens, nanodollars, isPartlyUnknown: false });
const NOTHING = known(0, 0);

/** A day that no other test of the file uses. */
let days = 0;
const newDay = (): string => dayOf(new Date(Date.UTC(2027, 0, ++days)));
const noonOf = (day: string): string => `${day}T12:00:00.000Z`;

/** What clients of a conversation were told of what it has spent. */
async function toldOf(db: Database, id: string): Promise<readonly unknown[]> {
  const events = await readEvents(db, id, 0, 1_000);
  return events.filter(({ name }) => name === "spending.changed").map(({ data }) => data);
}

async function charged(db: Database, id: string, head: Revision, at: string, charges: readonly Charge[]) {
  const [next] = chain([{ at, charges }], head);
  if (next === undefined) throw new Error("a chain of one has a head");
  expect((await commit(db, id, [next])).diverged).toBe(false);
  return next;
}

describe("a charge", () => {
  test("counts once, however often and by however many its revision is committed", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const day = newDay();
    const revisions = chain(
      Array.from({ length: 20 }, (_, n) => ({ at: noonOf(day), charges: [charge(n), charge(100)] })),
      head,
    );
    const writers = Array.from({ length: 4 }, async () => {
      // Each commit carries revisions that others have committed, as one does whose answer was lost.
      for (let n = 0; n < revisions.length; n++)
        expect((await commit(db, id, revisions.slice(Math.max(0, n - 3), n + 1))).diverged).toBe(false);
    });
    await Promise.all(writers);
    const sum = known(400, 190 + 2_000);
    expect(await readSums(db, id, day)).toEqual({ conversation: sum, day: sum });
  });

  test("of a revision of another history counts nothing", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const day = newDay();
    await charged(db, id, head, noonOf(day), [charge(1)]);
    const [rival] = chain([{ at: noonOf(day), charges: [charge(1_000)] }], head);
    if (rival === undefined) throw new Error("a chain of one has a head");
    expect((await commit(db, id, [rival])).diverged).toBe(true);
    expect((await readSums(db, id, day)).conversation).toEqual(known(10, 1));
  });

  test("counts for the day in which its revision was made, also when both sides of midnight come in one commit", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const revisions = chain(
      [
        { at: "2026-12-31T23:59:59.999Z", charges: [charge(1)] },
        { at: "2027-01-01T00:00:00.000Z", charges: [charge(20)] },
      ],
      head,
    );
    await commit(db, id, revisions);
    const before = await readSums(db, id, "2026-12-31");
    expect(before.day).toEqual(known(10, 1));
    expect(before.conversation).toEqual(known(20, 21));
    expect((await readSums(db, id, "2027-01-01")).day.nanodollars).toBeGreaterThanOrEqual(20);
  });

  test("of a sub-agent counts for its parent, and is shown and told there; by the model of each", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const child = await createConversation(
      db,
      {},
      { config: { parentId: id, model: "small", userInitiated: false } },
    );
    const day = newDay();
    await charged(db, id, head, noonOf(day), [charge(2_000_000_000)]);
    await charged(db, child.id, child.head, noonOf(day), [charge(500_000_000)]);
    expect((await readSums(db, child.id, day)).conversation).toEqual(known(20, 2_500_000_000));
    expect((await getConversation(db, id))?.spent).toEqual({ tokens: 20, dollars: 2.5 });
    expect((await getConversation(db, child.id))?.spent).toBeNull();
    expect(await toldOf(db, id)).toEqual([
      { tokens: 10, dollars: 2 },
      { tokens: 20, dollars: 2.5 },
    ]);
    expect(await toldOf(db, child.id)).toEqual([]);
    const rows = await db.sql`
      select model, nanodollars from spending where conversation_id = ${id} order by model`;
    expect(rows).toEqual([
      { model: "small", nanodollars: 500_000_000 },
      { model: "some-model", nanodollars: 2_000_000_000 },
    ]);
  });

  test("without a price makes the cost unknown, and never 0; its tokens count", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const day = newDay();
    const next = await charged(db, id, head, noonOf(day), [charge(null)]);
    expect((await getConversation(db, id))?.spent).toEqual({ tokens: 10, dollars: null });
    await charged(db, id, next, noonOf(day), [charge(7)]);
    expect((await getConversation(db, id))?.spent).toEqual({ tokens: 20, dollars: null });
    expect((await readSums(db, id, day)).day).toEqual({ tokens: 20, nanodollars: 7, isPartlyUnknown: true });
  });

  test("with numbers that no provider should report stops no commit", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const day = newDay();
    const odd = { inputTokens: -1, outputTokens: 0.5, cacheReadTokens: NaN, cacheCreationTokens: 1e300 };
    await charged(db, id, head, noonOf(day), [{ ...odd, nanodollars: Infinity }]);
    const { conversation } = await readSums(db, id, day);
    expect(conversation).toEqual(known(1e12 + 1, 0));
  });

  test("is told once to clients, before what came with it; a commit without one tells nothing of it", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const notices = [{ name: "usage.changed", data: { usage: viewUsage(valueWith({}).usage) } }] as const;
    const revisions = chain([{ notices, charges: [charge(250_000_000)] }, { notices }], head);
    await commit(db, id, revisions);
    await commit(db, id, revisions);
    const told = await readEvents(db, id, 0, 10);
    expect(told.map(({ name }) => name)).toEqual(["spending.changed", "usage.changed", "usage.changed"]);
    expect(told[0]?.data).toEqual({ tokens: 10, dollars: 0.25 });
  });
});

describe("the sums that a commit brings", () => {
  test("are those that were asked for, with the charges of the commit itself, for the claim that is granted", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const other = await createConversation(db);
    const day = newDay();
    await charged(db, other.id, other.head, noonOf(day), [charge(5)]);
    const revisions = chain([{ at: noonOf(day), charges: [charge(1)], awaits: "request" }], head);
    const ask = (sums: Parameters<typeof commitAndRead>[3]["sums"], operationId = "request") =>
      commitAndRead(db, id, pack(revisions), {
        createInput: null,
        claim: { operationId, dispatchAttempt: 0, by: "me", restarts: 0 },
        lastRead: null,
        sums: sums ?? null,
      });
    expect((await ask({ conversation: true, day })).sums).toEqual({
      conversation: known(10, 1),
      day: known(20, 6),
    });
    expect((await ask({ conversation: false, day })).sums).toEqual({ conversation: null, day: known(20, 6) });
    expect((await ask({ conversation: true, day: null })).sums).toEqual({
      conversation: known(10, 1),
      day: null,
    });
    expect((await ask(null)).sums).toBeNull();
    expect((await ask({ conversation: true, day }, "another")).sums).toBeNull();
  });
});

describe("a removed conversation", () => {
  test("stays in the day's sum; another one with its id begins at nothing", async () => {
    const db = await testDatabase();
    const { id, head } = await createConversation(db);
    const child = await createConversation(db, {}, { config: { parentId: id, userInitiated: false } });
    const day = newDay();
    await charged(db, id, head, noonOf(day), [charge(3)]);
    await charged(db, child.id, child.head, noonOf(day), [charge(4)]);
    const second = await createConversation(db);
    await charged(db, second.id, second.head, noonOf(day), [charge(10)]);
    for (const removed of [id, second.id]) expect(await deleteConversation(db, removed)).toBe(true);
    expect((await readSums(db, id, day)).day).toEqual(known(30, 17));
    await commit(db, id, chain([{}]), { config: configOf(id), title: null });
    expect((await getConversation(db, id))?.spent).toEqual({ tokens: 0, dollars: 0 });
    expect(await readSums(db, id, day)).toEqual({ conversation: NOTHING, day: known(30, 17) });
  });

  test("is forgotten after 90 days; a conversation that exists never is", async () => {
    const db = await ownDatabase();
    const ago = (daysAgo: number): string => new Date(Date.now() - daysAgo * 86_400_000).toISOString();
    const kept = await createConversation(db);
    await charged(db, kept.id, kept.head, ago(400), [charge(1)]);
    const gone = await createConversation(db);
    const next = await charged(db, gone.id, gone.head, ago(91), [charge(20)]);
    await charged(db, gone.id, next, ago(89), [charge(300)]);
    await deleteConversation(db, gone.id);
    const rows = await db.sql<{ nanodollars: number }[]>`select nanodollars from spending order by 1`;
    expect(rows.map(({ nanodollars }) => nanodollars)).toEqual([1, 300]);
  });
});

describe("commits at the same time", () => {
  test("of different conversations on one day do not wait for each other", async () => {
    const db = await testDatabase();
    const day = newDay();
    const [a, b] = [await createConversation(db), await createConversation(db)];
    await charged(db, a.id, a.head, noonOf(day), [charge(1)]);
    await db.sql.begin(async (transaction) => {
      // What a commit of the one holds until its end.
      await transaction`select from conversations where id = ${a.id} for no key update`;
      await transaction`select from spending where conversation_id = ${a.id} for update`;
      await charged(db, b.id, b.head, noonOf(day), [charge(2)]);
    });
    expect((await readSums(db, null, day)).day).toEqual(known(20, 3));
  });

  test("of a parent that is archived and its eight sub-agents end without a deadlock, and count everything", async () => {
    const db = await testDatabase();
    const day = newDay();
    const parent = await createConversation(db);
    const config = { parentId: parent.id, userInitiated: false };
    const children = await Promise.all(
      Array.from({ length: 8 }, () => createConversation(db, {}, { config })),
    );
    const write = async ({ id, head }: (typeof children)[number], archives: boolean): Promise<void> => {
      const fields = Array.from({ length: 20 }, (_, n) => ({
        at: noonOf(day),
        charges: [charge(1)],
        archived: archives ? n % 2 === 0 : null,
      }));
      for (const revision of chain(fields, head)) await commit(db, id, [revision]);
    };
    await Promise.all([write(parent, true), ...children.map((child) => write(child, false))]);
    expect((await readSums(db, parent.id, day)).conversation).toEqual(known(9 * 20 * 10, 180));
    // Each is told once, in the order of the sums.
    const sums = Array.from({ length: 180 }, (_, n) => ({ tokens: (n + 1) * 10, dollars: (n + 1) / 1e9 }));
    expect(await toldOf(db, parent.id)).toEqual(sums);
  });
});

test("a list shows what each has spent", async () => {
  const db = await ownDatabase();
  const { id, head } = await createConversation(db);
  await createConversation(db);
  await charged(db, id, head, NOON, [{ ...NO_TOKENS, inputTokens: 1_000_000, nanodollars: 4_000_000_000 }]);
  const page = await listConversations(db, { archived: "false", q: "", limit: 10, cursor: null });
  expect(page.conversations.map(({ spent }) => spent)).toEqual([
    { tokens: 0, dollars: 0 },
    { tokens: 1_000_000, dollars: 4 },
  ]);
});
