/** Owns: bringing a database's schema up to date, and whether it is. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import { openClient, type Database } from "./connect.ts";

/**
 * The key of an advisory lock: processes that migrate at the same time wait for one another. Any number that is not
 * used elsewhere will do.
 */
const LOCK = 7_263_310_001;

const FOLDER = fileURLToPath(new URL("./migrations", import.meta.url));

/** The number of this release's migrations. */
async function ownMigrations(): Promise<number> {
  const journal = await readFile(join(FOLDER, "meta", "_journal.json"), "utf8");
  return (JSON.parse(journal) as { readonly entries: readonly unknown[] }).entries.length;
}

/** Whether the database has what this release needs; that of a later release has more. Rejects when it is away. */
export async function isMigrated({ sql }: Database): Promise<boolean> {
  const [found] = await sql<{ there: boolean }[]>`
    select to_regclass('drizzle.__drizzle_migrations') is not null as there`;
  if (found?.there !== true) return false;
  const [applied] = await sql<{ count: number }[]>`select count(*)::int from drizzle.__drizzle_migrations`;
  return (applied?.count ?? 0) >= (await ownMigrations());
}

/**
 * Applies the migrations that are missing, each once, in one transaction.
 *
 * @param onProgress called with one sentence a step.
 */
export async function migrate(url: string, onProgress?: (sentence: string) => void): Promise<void> {
  // One connection: the lock belongs to it, and goes with it if this process dies.
  const client = openClient(url, "bedrock migrate");
  try {
    await client`select pg_advisory_lock(${LOCK})`;
    onProgress?.("Bringing the database's schema up to date.");
    await applyMigrations(drizzle(client), { migrationsFolder: FOLDER });
  } finally {
    await client.end({ timeout: 2 });
  }
}
