/**
 * Owns: waiting until Postgres shows what a workflow has answered, so that a client's next GET does
 * (docs/http.md, General).
 */
import { versionOf } from "../db/conversations.ts";
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import type { Hub } from "./events/hub.ts";

/** Milliseconds; beyond them the answer says `pending: true`, and what was accepted is safe all the same. */
const TIMEOUT_MS = 2_000;
/** Milliseconds between looks that nobody asked for: a notification may be lost with its connection. */
const UNPROMPTED_MS = 200;

/**
 * Looks until there is something to see, at once and after each commit of this conversation. A database that
 * cannot be reached, or hangs, has nothing to show yet.
 *
 * @param look null: not yet.
 * @returns null when it did not come in time.
 */
export async function awaitProjection<T>(
  hub: Hub,
  conversationId: string,
  look: () => Promise<T | null>,
): Promise<T | null> {
  const expiry = timer(TIMEOUT_MS);
  let bell = timer(UNPROMPTED_MS);
  // Subscribed before the first look: a commit in between is not missed.
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

/** Waits until the conversation's row has a revision; false when it did not get it in time. */
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
