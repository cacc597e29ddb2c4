/**
 * Owns: when a conversation counts as stuck: it works, but neither it nor its sub-agents have made progress for too
 * long.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Talk } from "../test/support/talk.ts";

export const STUCK_AFTER_MS = 60_000;
const LOOK_MS = 2_000;

/**
 * Resolves as `reached` does.
 *
 * @param afterMs within which a conversation that works must make progress, all recoveries included
 * @throws when the conversation is stuck before that.
 */
export async function unlessStuck<T>(talk: Talk, reached: Promise<T>, afterMs = STUCK_AFTER_MS): Promise<T> {
  const over = new AbortController();
  const stuck = watch(talk, afterMs, over.signal);
  try {
    return await Promise.race([reached, stuck]);
  } finally {
    over.abort();
    stuck.catch(() => undefined);
  }
}

async function watch(talk: Talk, afterMs: number, over: AbortSignal): Promise<never> {
  let last = "";
  let since = performance.now();
  for (;;) {
    const seen = await progressOf(talk);
    if (seen !== last) since = performance.now();
    else if (performance.now() - since > afterMs) {
      const known = JSON.stringify([await talk.state(), await pendingOf(talk)]);
      throw new Error(`${talk.id} is stuck: ${known}`);
    }
    last = seen;
    await pause(LOOK_MS, null, { signal: over });
  }
}

/** A value that changes whenever something has happened. */
async function progressOf(talk: Talk): Promise<string> {
  const { state, lastEvent } = await talk.read();
  const waits = (state as { readonly kind: string }).kind === "awaiting_sub_agents";
  const family = waits ? (await talk.children()).map((child) => child["lastEvent"]) : [];
  return JSON.stringify([lastEvent, ...family]);
}

/** The activities, children and workflow task that Temporal waits for. */
async function pendingOf({ product, id }: Talk): Promise<unknown> {
  const { raw } = await product.temporal.workflow.getHandle(id).describe();
  const { pendingActivities, pendingChildren, pendingWorkflowTask } = raw;
  return { pendingActivities, pendingChildren, pendingWorkflowTask };
}
