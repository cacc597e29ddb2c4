/**
 * A client misses no event and gets none twice between replay and tail, while others commit and clients come and go.
 * The numbers that a client has seen are always 1, 2, 3, …
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { openClient } from "../../db/connect.ts";
import { chain, createConversation, warned } from "../db/fixtures.ts";
import { EventReader } from "./sse.ts";
import { startApi, type TestApi } from "./support.ts";

/** Commits batches of the given sizes, one after the other. */
async function write(
  { db }: TestApi,
  sizes: readonly number[],
): Promise<{ id: string; done: Promise<void> }> {
  const { id, head } = await createConversation(db, { notices: [warned] });
  const batches = chain(
    sizes.map((size) => ({ notices: Array.from({ length: size }, () => warned) })),
    head,
  );
  const commitAll = async () => {
    for (const batch of batches) await commit(db, id, [batch]);
  };
  return { id, done: commitAll() };
}

/** Reads up to the event `last` in visits of so many events each, and resumes after the last event seen. */
async function readInVisits(
  api: TestApi,
  id: string,
  last: number,
  visits: readonly number[],
): Promise<number[]> {
  const numbers: number[] = [];
  for (let visit = 0; (numbers.at(-1) ?? 0) < last; visit++) {
    const from = numbers.at(-1);
    const events = new EventReader(
      await api.get(`/api/conversations/${id}/events${from === undefined ? "" : `?after=${from}`}`),
    );
    for (let left = visits[visit % visits.length] ?? 1; left > 0 && (numbers.at(-1) ?? 0) < last;) {
      const event = await events.next();
      if (event?.name === "snapshot") {
        numbers.push(...Array.from({ length: event.data["lastEvent"] as number }, (_, index) => index + 1));
      } else if (typeof event?.id === "number") {
        numbers.push(event.id);
        left -= 1;
      }
    }
    await events.cancel();
  }
  return numbers;
}

const consecutive = (last: number): number[] => Array.from({ length: last }, (_, index) => index + 1);

test("clients that come and go at any time see every number once, in order", async () => {
  const api = await startApi();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 5, maxLength: 60 }),
      fc.array(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 5 }), {
        minLength: 1,
        maxLength: 6,
      }),
      async (sizes, clients) => {
        const last = sizes.reduce((sum, size) => sum + size, 1);
        const { id, done } = await write(api, sizes);
        const seen = await Promise.all(clients.map((visits) => readInVisits(api, id, last, visits)));
        await done;
        for (const numbers of seen) expect(numbers).toEqual(consecutive(last));
      },
    ),
    { numRuns: 15 },
  );
});

test("many clients at once see every number once, also with more events than one read returns", async () => {
  const api = await startApi();
  const { id, done } = await write(
    api,
    Array.from({ length: 100 }, () => 4),
  );
  const clients = Array.from({ length: 20 }, (_, index) => [index + 1, 150]);
  const seen = await Promise.all(clients.map((visits) => readInVisits(api, id, 401, visits)));
  await done;
  for (const numbers of seen) expect(numbers).toEqual(consecutive(401));
});

test("broken connections to Postgres, the listening one too, delay events and lose none", async () => {
  const api = await startApi();
  const sizes = Array.from({ length: 60 }, () => 2);
  const { id, head } = await createConversation(api.db, { notices: [warned] });
  const events = new EventReader(await api.get(`/api/conversations/${id}/events`));
  await events.until("synced");
  const [{ name } = { name: "" }] = await api.db.sql<{ name: string }[]>`select current_database() as name`;
  const breaker = openClient(api.url, "breaker");
  let previous = head;
  for (const [index, size] of sizes.entries()) {
    const [batch] = chain([{ notices: Array.from({ length: size }, () => warned) }], previous);
    if (batch === undefined) throw new Error("a chain of one has a head");
    if (index % 20 === 10) {
      await breaker`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = ${name} and pid <> pg_backend_pid()`;
    }
    await commitStubbornly(api, id, batch);
    previous = batch;
  }
  await breaker.end();
  await events.until((event) => event.id === 121);
  expect(events.received.flatMap((event) => event.id ?? [])).toEqual(consecutive(121).slice(1));
  await events.cancel();
});

async function commitStubbornly(
  api: TestApi,
  id: string,
  batch: Parameters<typeof commit>[2][number],
): Promise<void> {
  for (;;) {
    try {
      await commit(api.db, id, [batch]);
      return;
    } catch {
      // The connection was broken: the same commit may be repeated.
    }
  }
}
