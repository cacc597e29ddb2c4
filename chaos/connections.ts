/** Owns: the fault in which other clients take all connections of Postgres. */
import { setTimeout as pause } from "node:timers/promises";
import type { Sql } from "postgres";
import { openClient } from "../db/connect.ts";
import { sqlErrorOf } from "../db/errors.ts";

const NAME = "chaos that takes connections";
const TOO_MANY_CONNECTIONS = "53300";
/** Connections to take; more than the server has. */
const TAKEN = 110;
const LOOK_MS = 50;

/**
 * For `ms` milliseconds, takes all connections and terminates those of other clients, again and again.
 *
 * @returns whether there was ever none left.
 */
export async function exhaust(url: string, ms: number): Promise<boolean> {
  const clients = Array.from({ length: TAKEN }, () => openClient(url, NAME));
  const until = performance.now() + ms;
  let wasFull = false;
  const take = async (sql: Sql): Promise<void> => {
    while (performance.now() < until) {
      // A client keeps its connection, and takes another one if a fault has ended it.
      const refusal = await sql`select 1`.then(
        () => null,
        (error: unknown) => error,
      );
      wasFull ||= refusal !== null && sqlErrorOf(refusal).code === TOO_MANY_CONNECTIONS;
      await pause(LOOK_MS);
    }
  };
  const terminate = async (sql: Sql): Promise<void> => {
    while (performance.now() < until) {
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and application_name not like 'chaos%'`.catch(() => undefined);
      await pause(LOOK_MS);
    }
  };
  try {
    // A server that another fault freezes meanwhile does not answer, so the wait has a limit.
    await Promise.race([
      Promise.all([...clients.map(take), ...clients.slice(0, 1).map(terminate)]),
      pause(ms + 2_000),
    ]);
  } finally {
    await Promise.all(clients.map((sql) => sql.end({ timeout: 1 })));
  }
  return wasFull;
}
