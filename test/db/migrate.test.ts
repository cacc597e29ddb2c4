/** Every start migrates the database, also several at once, and again. */
import { expect, inject, test } from "vitest";
import journal from "../../db/migrations/meta/_journal.json" with { type: "json" };
import { openClient } from "../../db/connect.ts";
import { migrate } from "../../db/migrate.ts";
import { databaseUrl } from "../support/postgres.ts";
import { createConversation, ownDatabase } from "./fixtures.ts";

test("when several processes start on an empty database, one migrates and the others wait", async () => {
  const server = openClient(inject("postgresUrl"), "test");
  const name = `test_migrate_${process.pid}`;
  await server`create database ${server(name)}`;
  const url = databaseUrl(inject("postgresUrl"), name);
  try {
    await Promise.all([migrate(url), migrate(url), migrate(url)]);
    const client = openClient(url, "test");
    const applied = await client`select from drizzle.__drizzle_migrations`;
    expect(applied).toHaveLength(journal.entries.length);
    await client.end();
  } finally {
    await server`drop database ${server(name)} with (force)`;
    await server.end();
  }
});

test("a second migration changes nothing", async () => {
  const db = await ownDatabase();
  const { id } = await createConversation(db);
  const said: string[] = [];
  await migrate(db.url, (sentence) => said.push(sentence));
  expect(said).not.toEqual([]);
  const rows = await db.sql`select id from conversations`;
  expect(rows).toEqual([{ id }]);
});
