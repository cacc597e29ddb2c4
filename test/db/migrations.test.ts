/**
 * The old release works on while a new one is rolled out, so each migration only adds (docs/operations.md, "What a
 * release may change"). What a statement of the old release needs is compared in the catalog.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TransactionSql } from "postgres";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import journal from "../../db/migrations/meta/_journal.json" with { type: "json" };
import { openClient } from "../../db/connect.ts";
import { catalogOf, contractions, type Catalog } from "../support/catalog.ts";
import { databaseUrl } from "../support/postgres.ts";
import { ownDatabase } from "./fixtures.ts";

/** Migrations that take away what no statement of the release before them needs any more, and why it does not. */
const CONTRACTS: { readonly [tag: string]: string } = {};

const FOLDER = join(import.meta.dirname, "..", "..", "db", "migrations");
const name = `test_migrations_${process.pid}`;
const server = openClient(inject("postgresUrl"), "test");
const catalogs: Catalog[] = [];

beforeAll(async () => {
  await server`create database ${server(name)}`;
  const client = openClient(databaseUrl(inject("postgresUrl"), name), "test");
  for (const { tag } of journal.entries) {
    const text = readFileSync(join(FOLDER, `${tag}.sql`), "utf8");
    for (const statement of text.split("--> statement-breakpoint")) await client.unsafe(statement);
    catalogs.push(await catalogOf(client));
  }
  await client.end();
});
afterAll(async () => {
  await server`drop database ${server(name)} with (force)`;
  await server.end();
});

test.each(journal.entries.slice(1))("$tag takes nothing from the release before", ({ idx, tag }) => {
  const [before, after] = [catalogs[idx - 1], catalogs[idx]];
  if (before === undefined || after === undefined) throw new Error("Each migration was applied.");
  if (CONTRACTS[tag] === undefined) expect(contractions(before, after)).toEqual([]);
});

describe("what is found", () => {
  class Undo extends Error {}

  async function found(change: (sql: TransactionSql) => Promise<unknown>): Promise<readonly string[]> {
    const { sql } = await ownDatabase();
    let problems: readonly string[] = [];
    const changed = sql.begin(async (transaction) => {
      await transaction`create table olds (id int primary key, word text, number int not null default 1)`;
      await transaction`create function twice(n int) returns int language sql return n * 2`;
      const before = await catalogOf(transaction);
      await change(transaction);
      problems = contractions(before, await catalogOf(transaction));
      throw new Undo();
    });
    await changed.catch((error: unknown) => {
      if (!(error instanceof Undo)) throw error;
    });
    return problems;
  }

  test.each([
    ["alter table olds drop column word", "The column olds.word is gone."],
    ["drop table olds", "The column olds.id is gone."],
    ["alter table olds rename word to term", "The column olds.word is gone."],
    ["alter table olds alter number type bigint", "The column olds.number is bigint, and was integer."],
    ["alter table olds alter word set not null", "The column olds.word must have a value."],
    ["alter table olds alter number drop default", "The column olds.number must have a value."],
    ["alter table olds add more int not null", "The new column olds.more must have a value."],
    [
      "alter table olds add constraint short check (length(word) < 9)",
      "The constraint short limits rows of olds.",
    ],
    ["create unique index words on olds (lower(word))", "The constraint words limits rows of olds."],
    ["alter table olds drop constraint olds_pkey", "The unique index olds_pkey is gone."],
    ["create table news (old int references olds)", "The constraint news_old_fkey keeps rows of olds."],
    ["drop function twice", "The function twice(n integer) integer is gone."],
    [
      "create function twice(n int, m int default 0) returns int language sql return n * 2 + m",
      "There is one more function twice: a call may mean either.",
    ],
  ])("%s", async (statement, sentence) => {
    expect(await found((sql) => sql.unsafe(statement))).toContain(sentence);
  });

  test("what only adds is none of it", async () => {
    const additions = [
      "create table news (id int primary key, old int references olds on delete cascade, word text not null unique)",
      "alter table olds add more int, add most int not null default 3 check (most > 0)",
      "create index words on olds (word)",
      "create or replace function twice(n int) returns int language sql return n + n",
      "create function thrice(n int) returns int language sql return n * 3",
    ];
    const problems = await found(async (sql) => {
      for (const statement of additions) await sql.unsafe(statement);
    });
    expect(problems).toEqual([]);
  });
});
