/** Which errors of the database are outages, which callers answer with 503 or repeat, and which are not. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Database, openDatabase } from "../../db/connect.ts";
import { versionOf } from "../../db/conversations.ts";
import { isUnavailable } from "../../db/errors.ts";
import { commit } from "../../db/commit.ts";
import { chain, ownDatabase, testDatabase } from "./fixtures.ts";

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable("it was to fail"),
    (error: unknown) => error,
  );
}

function open(url: string): Database {
  const db = openDatabase(url, { max: 1 });
  onTestFinished(() => db.close());
  return db;
}

test("a missing socket is an outage", async () => {
  const folder = await mkdtemp(join(tmpdir(), "bedrock-test-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const db = open(`postgres://app@localhost/bedrock?host=${encodeURIComponent(folder)}`);
  expect(isUnavailable(await failureOf(commit(db, "x", chain([{}]))))).toBe(true);
  expect(isUnavailable(await failureOf(versionOf(db, "x")))).toBe(true);
});

test("a closed port is an outage", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  await new Promise((resolve) => server.close(resolve));
  const refused = open(`postgres://app@127.0.0.1:${port}/bedrock`);
  expect(isUnavailable(await failureOf(versionOf(refused, "x")))).toBe(true);
});

test("a connection that ends in the middle of a query is an outage, and the next query is served", async () => {
  const db = await ownDatabase();
  const failure = failureOf(db.sql`select pg_sleep(60), 'the one to end'`);
  await expect
    .poll(async () => {
      const ended = await db.sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like '%the one to end%' and pid <> pg_backend_pid()`;
      return ended.length;
    })
    .toBe(1);
  expect(isUnavailable(await failure)).toBe(true);
  expect(await versionOf(db, "x")).toBeNull();
});

test("a closed pool is an outage", async () => {
  const db = await ownDatabase();
  await db.close();
  expect(isUnavailable(await failureOf(commit(db, "x", [])))).toBe(true);
});

test("a defect is no outage", async () => {
  const db = await testDatabase();
  expect(isUnavailable(await failureOf(db.sql`select from nothing`))).toBe(false);
  expect(isUnavailable(new Error("x"))).toBe(false);
  expect(isUnavailable("ECONNREFUSED")).toBe(false);
});
