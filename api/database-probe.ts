/**
 * Owns: noticing a database that hangs. The driver waits for ever for a server that takes a question and does not
 * answer it; so while somebody waits, the smallest question is asked beside theirs.
 * Not here: a database that cannot be reached, which the driver tells at once.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { sql } from "drizzle-orm";
import type { Database } from "../db/connect.ts";

export type Health = "answers" | "refuses" | "silent";

export type DatabaseProbe = {
  /** Asks the database now; one question serves all who ask meanwhile. */
  check(): Promise<Health>;
  /**
   * Asks every second from now on, until the function that it returns is called.
   *
   * @param onSilent called when no answer has come.
   */
  watch(onSilent: () => void): () => void;
};

/** Milliseconds that somebody has waited before it is asked why. */
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
        // Many may wait; one question in an interval is enough for all of them.
        if (performance.now() - toldAt < INTERVAL_MS) return;
        if ((await check()) === "silent") onSilent();
      };
      const timer = setInterval(() => void look(), INTERVAL_MS);
      return () => clearInterval(timer);
    },
  };
}

/** Of both pools: either may hang alone. */
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
  // A process that was busy itself may have the answer, and not have read it yet.
  await nextTurn();
  return "silent";
}
