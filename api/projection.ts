/**
 * Owns: waiting until Postgres shows what a workflow has answered, so that a client's next GET shows it, too
 * (docs/http.md, General).
 */
import { versionOf } from "../db/conversations.ts";
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import type { Hub } from "./events/hub.ts";

/** Milliseconds. After them the response says `pending: true`; the accepted change is safe all the same. */
const TIMEOUT_MS = 2_000;
/** Milliseconds between reads without a notification: one may be lost with its connection. */
const UNPROMPTED_MS = 200;

/**
 * Reads at once and after each commit of this conversation, until there is a result. A database that cannot be reached,
 * or hangs, has no result yet.
 *
 * @param look null: not yet.
 * @returns null when no result came in time.
 */
export async function awaitProjection<T>(
  hub: Hub,
  conversationId: string,
  look: () => Promise<T | null>,
): Promise<T | null> {
  const expiry = timer(TIMEOUT_MS);
  let bell = timer(UNPROMPTED_MS);
  // Subscribes before the first read, so that a commit in between is not missed.
  const unwatch = hub.watch(conversationId, (signal) => {
    if (signal.kind !== "live") bell.ring();
  });
  try {
    while (!expiry.rung()) {
      bell.ring();
      bell = timer(UNPROMPTED_MS);
      const seen = await Promise.race([look().catch(nothingYet), expiry.promise]);
      if (seen !== null) return seen;
      await Promise.race([bell.promise, expiry.promise]);
    }
    return null;
  } finally {
    unwatch();
    bell.ring();
    expiry.ring();
  }
}

/** A promise that resolves after some milliseconds, or when it is rung. */
function timer(ms: number) {
  let rung = false;
  let resolve = (): void => undefined;
  const promise = new Promise<null>((settle) => (resolve = () => settle(null)));
  const ring = () => {
    rung = true;
    clearTimeout(timeout);
    resolve();
  };
  const timeout = setTimeout(ring, ms);
  return { promise, ring, rung: () => rung };
}

function nothingYet(error: unknown): null {
  if (isUnavailable(error)) return null;
  throw error;
}

/** Waits until the conversation's row has the revision; false when it does not get it in time. */
export async function awaitRevision(
  { db, hub }: { readonly db: Database; readonly hub: Hub },
  conversationId: string,
  revision: number,
): Promise<boolean> {
  const reached = await awaitProjection(hub, conversationId, async () => {
    const at = await versionOf(db, conversationId);
    return at !== null && at.revision >= revision ? at : null;
  });
  return reached !== null;
}
