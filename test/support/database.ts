/** Owns: a database of its own for each test, made from the migrated template of the run (postgres.ts). */
import { randomBytes } from "node:crypto";
import { afterAll, inject } from "vitest";
import { openClient } from "../../db/connect.ts";
import { databaseUrl, TEMPLATE } from "./postgres.ts";

const created: string[] = [];

/**
 * The url of a new, migrated, empty database. It is dropped when the tests of the file are over, by force, so a
 * connection that was left open does no harm.
 */
export async function freshDatabase(): Promise<string> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await onServer(
    (client) => client`create database ${client(name)} template ${client(TEMPLATE)} strategy file_copy`,
  );
  created.push(name);
  return databaseUrl(inject("postgresUrl"), name);
}

// Registered when the file imports this module, so it runs after the hooks of the file itself.
afterAll(async () => {
  await onServer(async (client) => {
    for (const name of created) await client`drop database ${client(name)} with (force)`;
  });
});

async function onServer<T>(work: (client: ReturnType<typeof openClient>) => Promise<T>): Promise<T> {
  const client = openClient(inject("postgresUrl"), "bedrock test");
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
