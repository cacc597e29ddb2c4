/** Owns: bringing a database's schema up to date. */
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/postgres-js";
import { migrate as applyMigrations } from "drizzle-orm/postgres-js/migrator";
import { openClient } from "./connect.ts";

/**
 * The key of an advisory lock: processes that migrate at the same time wait for one another. Any number that is not
 * used elsewhere will do.
 */
const LOCK = 7_263_310_001;

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
    const migrationsFolder = fileURLToPath(new URL("./migrations", import.meta.url));
    await applyMigrations(drizzle(client), { migrationsFolder });
  } finally {
    await client.end({ timeout: 2 });
  }
}
