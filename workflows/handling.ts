/** Owns: what updates and signals have in common beyond handing an event to the machine. */
import * as activities from "./activities.ts";
import type { Runtime } from "./runtime.ts";

const REMOVE_WITHIN_MS = 5_000;

/** Archiving stops the work first. */
export async function archive(runtime: Runtime, archived: boolean): Promise<void> {
  if (archived) await runtime.stop();
  runtime.setArchived(archived);
}

/** Stops the work and deletes the rows; a tool that will not die does not keep them alive. */
export async function remove(runtime: Runtime): Promise<void> {
  const conversationId = runtime.identity?.profile.id;
  if (conversationId === undefined) return;
  let isStopped = false;
  void runtime.stop().then(() => (isStopped = true));
  await runtime.waitFor(() => isStopped, REMOVE_WITHIN_MS);
  runtime.markRemoved();
  const { createdAt } = runtime;
  await runtime.shielded(() => activities.remove({ conversationId, createdAt }));
}
