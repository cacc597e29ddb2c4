/** Owns: the PostgreSQL of a test run, with the migrated template that every test's database is made from. */
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClient } from "../../db/connect.ts";
import { migrate } from "../../db/migrate.ts";
import { startPostgres } from "../../local/postgres.ts";
import { isDead } from "./processes.ts";

export const TEMPLATE = "bedrock_template";

export type TestPostgres = {
  /** URL of the server's maintenance database. */
  readonly url: string;
  stop(): Promise<void>;
};

export async function startTestPostgres(): Promise<TestPostgres> {
  await removeAbandoned();
  const dataDir = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const remove = () => rm(dataDir, { recursive: true, force: true });
  try {
    // A run as root gives the server to another user, who must be able to enter the directory.
    await chmod(dataDir, 0o755);
    const postgres = await startPostgres({ dataDir, durable: false });
    const url = databaseUrl(postgres.url, "postgres");
    try {
      const client = openClient(url, "bedrock test setup");
      await client`create database ${client(TEMPLATE)}`;
      await client.end();
      await migrate(databaseUrl(url, TEMPLATE));
    } catch (error) {
      await postgres.stop();
      throw error;
    }
    return { url, stop: () => postgres.stop().then(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

const PREFIX = "bedrock-test-run-";

/** A killed run leaves its folder behind; its server has ended with it. Another user's folder stays. */
async function removeAbandoned(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const run = Number.parseInt(name.slice(PREFIX.length), 10);
    if (!(run > 0) || !isDead(run)) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** The URL of another database on the same server. */
export function databaseUrl(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
