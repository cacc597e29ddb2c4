/** A database of several servers: a primary and its standby, by both addresses or behind one that stays. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openClient, openDatabase } from "../../db/connect.ts";
import { isUnavailable } from "../../db/errors.ts";
import { listenTo } from "../../db/listener.ts";
import { freePort } from "../../local/ports.ts";
import { PostgresPair } from "../operations/postgres-pair.ts";

let dir: string;
let pair: PostgresPair;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "bedrock-pair-"));
  pair = await PostgresPair.start(join(dir, "postgres"), { synchronous: true });
}, 60_000);
afterAll(async () => {
  await pair.stop();
  await rm(dir, { recursive: true, force: true });
}, 60_000);

const urlOf = (...ports: readonly number[]): string =>
  `postgres://app@${ports.map((port) => `127.0.0.1:${port}`).join(",")}/bedrock`;
const failureOf = (asked: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(asked).then(
    () => null,
    (error: unknown) => error,
  );

test("of several servers the primary is found, in whatever order they are", async () => {
  const standby = pair.ports.find((port) => port !== pair.primary.port) ?? 0;
  for (const ports of [
    [pair.primary.port, standby],
    [standby, pair.primary.port],
    [await freePort(), standby, pair.primary.port],
  ]) {
    const sql = openClient(urlOf(...ports), "test");
    expect(await sql`select pg_is_in_recovery() as standby, inet_server_port() as port`).toEqual([
      { standby: false, port: pair.primary.port },
    ]);
    await sql.end({ timeout: 1 });
  }
});

test("a standby alone, and servers that are all away, count as unavailable, at once", async () => {
  const standby = pair.ports.find((port) => port !== pair.primary.port) ?? 0;
  for (const ports of [[standby], [standby, await freePort()], [await freePort(), await freePort()]]) {
    const sql = openClient(urlOf(...ports), "test");
    expect(isUnavailable(await failureOf(sql`select 1`))).toBe(true);
    await sql.end({ timeout: 1 });
  }
});

test("behind a proxy that finds no server, a query fails, and is not asked for again without an end", async () => {
  let connections = 0;
  const proxy = createServer((client) => {
    connections += 1;
    client.on("error", () => undefined).end();
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => void proxy.close());
  const sql = openClient(urlOf((proxy.address() as AddressInfo).port), "test");
  for (let n = 1; n <= 3; n++) {
    expect(isUnavailable(await failureOf(sql`select 1`))).toBe(true);
    expect(connections).toBe(n);
  }
  await sql.end({ timeout: 1 });
});

test("a pool and a listener go on with the standby that was promoted, also behind a stable address", async () => {
  const all = [urlOf(...pair.ports), urlOf(pair.stablePort)].map((url) => {
    const db = openDatabase(url);
    const heard: string[] = [];
    let reconnects = 0;
    const listening = listenTo(
      url,
      "test",
      { bedrock_commits: (payload) => void heard.push(payload) },
      () => void (reconnects += 1),
    );
    onTestFinished(() => Promise.all([listening.close(), db.close()]).then(() => undefined));
    return { db, heard, listening, reconnects: () => reconnects };
  });
  for (const { db, listening } of all) {
    await listening.ready;
    await db.sql`create table if not exists written (n int)`;
  }
  // Commits are under way all the time; what was answered is noted.
  const answered: number[] = [];
  let isOver = false;
  const writers = Array.from({ length: 8 }, async (_, k) => {
    const { db } = all[k % all.length] ?? { db: openDatabase("") };
    for (let n = k; !isOver; n += 8) {
      const failure = await failureOf(db.sql`insert into written values (${n})`);
      if (failure === null) answered.push(n);
      else expect(isUnavailable(failure)).toBe(true);
    }
  });
  await expect.poll(() => answered.length).toBeGreaterThan(100);
  await pair.failOver(200);
  const before = answered.length;
  await expect.poll(() => answered.length, { timeout: 10_000 }).toBeGreaterThan(before + 100);
  isOver = true;
  await Promise.all(writers);
  const [{ db: first }] = all as [(typeof all)[number]];
  const rows = await first.sql<{ n: number }[]>`select n from written`;
  const there = new Set(rows.map(({ n }) => n));
  expect(answered.filter((n) => !there.has(n))).toEqual([]);
  for (const { heard, reconnects } of all) {
    await expect.poll(reconnects, { timeout: 10_000 }).toBeGreaterThan(0);
    await first.sql.notify("bedrock_commits", "hello");
    await expect.poll(() => heard).toContain("hello");
  }
  await pair.buildStandby();
}, 60_000);

test("with an asynchronous standby, what was answered last is lost", async () => {
  const folder = await mkdtemp(join(tmpdir(), "bedrock-pair-"));
  const careless = await PostgresPair.start(join(folder, "postgres"), { synchronous: false });
  const db = openDatabase(urlOf(...careless.ports));
  onTestFinished(async () => {
    await db.close();
    await careless.stop();
    await rm(folder, { recursive: true, force: true });
  }, 60_000);
  await db.sql`create table written (n int)`;
  const [at] = await db.sql<{ lsn: string }[]>`select pg_current_wal_lsn()::text as lsn`;
  const arrived = () =>
    db.sql`select 1 from pg_stat_replication where replay_lsn >= ${at?.lsn ?? ""}::pg_lsn`;
  await expect.poll(async () => (await arrived()).length).toBe(1);
  const answered: number[] = [];
  const failing = careless.failOver(500);
  for (let n = 0; (await failureOf(db.sql`insert into written values (${n})`)) === null; n++)
    answered.push(n);
  await failing;
  const rows = await expect
    .poll(async () => db.sql<{ n: number }[]>`select n from written`.catch(() => null), { timeout: 30_000 })
    .not.toBeNull()
    .then(() => db.sql<{ n: number }[]>`select n from written`);
  expect(rows.length).toBeLessThan(answered.length);
}, 60_000);
