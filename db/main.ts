/**
 * Owns: the migration as a process of its own, for an installation that `npm start` does not run. It ends when the
 * database has the tables of this release; several may run at once.
 */
import { migrate } from "./migrate.ts";

export async function main({ DATABASE_URL: url }: NodeJS.ProcessEnv): Promise<void> {
  if (url === undefined || url === "") {
    console.error("DATABASE_URL is not set: the address of a PostgreSQL database.");
    process.exitCode = 1;
    return;
  }
  await migrate(url);
  console.log("migrated");
}
