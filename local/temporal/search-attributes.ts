/**
 * Owns: the search attributes that the namespace must have, so that operators find conversations by their state.
 * The development server gets them as flags; a server that was there before is asked to add them.
 */
import type { Connection } from "@temporalio/client";

/** Name to the API's number of its type. */
export const SEARCH_ATTRIBUTES = { status: 2, mode: 2, parent: 2 } as const satisfies Record<string, 2>;

/** Adds those that are missing; the namespace's other attributes stay. */
export async function ensureSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(SEARCH_ATTRIBUTES).filter(([name]) => !(name in customAttributes));
  if (missing.length === 0) return;
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing),
  });
}
