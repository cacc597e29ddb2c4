/**
 * Owns: detecting a database that hangs. The driver waits for ever for a server that takes a query and does not answer
 * it. So the probe sends the smallest query beside the requests that wait.
 * Not here: a database that cannot be reached; the driver reports that at once.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { sql } from "drizzle-orm";
import type { Database } from "../db/connect.ts";

type Health = "answers" | "refuses" | "silent";

export type DatabaseProbe = {
  /** Queries the database now; concurrent callers share one query. */
  check(): Promise<Health>;
  /**
   * Queries every second from now on, until the returned function is called.
   *
   * @param onSilent called when no answer has come.
   */
  watch(onSilent: () => void): () => void;
};

/** Milliseconds that a request waits before the first query, and between two queries. */
const INTERVAL_MS = 1_000;
/** Milliseconds for the answer. */
const TIMEOUT_MS = 2_000;

export function createDatabaseProbe(db: Database): DatabaseProbe {
  let asking: Promise<Health> | null = null;
  let toldAt = Number.NEGATIVE_INFINITY;

  const ask = async (): Promise<Health> => {
    const sign = await Promise.race([answerOf(db), silence()]);
    toldAt = performance.now();
    asking = null;
    return sign;
  };
  const check = () => (asking ??= ask());

  return {
    check,
    watch(onSilent) {
      const look = async () => {
        // Many requests may wait; one query in an interval is enough for all of them.
        if (performance.now() - toldAt < INTERVAL_MS) return;
        if ((await check()) === "silent") onSilent();
      };
      const timer = setInterval(() => void look(), INTERVAL_MS);
      return () => clearInterval(timer);
    },
  };
}

/** Queries both pools, because either may hang alone. */
async function answerOf(db: Database): Promise<Health> {
  try {
    await Promise.all([db.sql`select 1`, db.orm.execute(sql`select 1`)]);
    return "answers";
  } catch {
    return "refuses";
  }
}

async function silence(): Promise<Health> {
  await sleep(TIMEOUT_MS, undefined, { ref: false });
  // If this process itself was busy, the answer may have arrived without being read yet.
  await nextTurn();
  return "silent";
}
