/**
 * Owns: "commit before effect, in one activity" (architecture, rules 1 and 2): the batches are committed, the
 * row says whether it waits for this operation, and only then is the effect performed.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { commit } from "../db/commit.ts";
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import type { Claim, Committed } from "../machine/batch.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { EffectInput, Performed } from "./contract.ts";
import { withLiveness } from "./liveness.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
const GIVE_UP_AFTER_MS = 8_000;

/**
 * Commits, then performs the effect if the row waits for `operationId`.
 *
 * @param effect gets a signal that ends it early; it answers all the same.
 */
export function commitThen<E extends ConversationEvent>(
  db: Database,
  input: EffectInput,
  operationId: string,
  effect: (signal: AbortSignal) => Promise<E>,
): Promise<Performed<E>> {
  return withLiveness(async (liveness) => {
    // Another run of this very activity has another name, and only one of them performs.
    const claim = { operationId, order: input.order, by: randomUUID() };
    const committed = await tryCommit(db, input, claim, liveness.signal);
    if (committed === null) return { kind: "not_started" };
    const mine = !committed.fork && committed.awaits === operationId;
    if (!mine || liveness.signal.aborted || liveness.isDoubtful()) return { kind: "superseded", committed };
    return { kind: "done", committed, event: await effect(liveness.signal) };
  });
}

/** null when the database could not be reached in time, or while it was tried the effect was called off. */
async function tryCommit(
  db: Database,
  input: EffectInput,
  claim: Claim,
  signal: AbortSignal,
): Promise<Committed | null> {
  const { conversationId, batches, opening } = input;
  const deadline = performance.now() + GIVE_UP_AFTER_MS;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
    try {
      return await unlessAborted(commit(db, conversationId, batches, opening ?? undefined, claim), signal);
    } catch (error) {
      if (signal.aborted) return null;
      if (!isUnavailable(error)) throw error;
      if (performance.now() + pause > deadline) return null;
      await delay(pause);
    }
  }
}

/** A database that does not answer must not hold up a cancel; what it does with the commit later is harmless. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new Error("aborted"));
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    if (signal.aborted) onAbort();
  });
}
