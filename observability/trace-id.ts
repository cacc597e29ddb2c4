/**
 * Owns: the id of a turn's trace, which is derived from the turn, so that every process finds it without being told. A
 * turn is a request cycle (docs/cycles.md); the cycle's id is that of its root message.
 */
import { createHash } from "node:crypto";

export type TurnId = { readonly conversationId: string; readonly cycleId: string };

/** The bytes of an id that is a UUID are random enough, and a person finds the trace by them. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i;

/**
 * 32 lower-case hexadecimal digits: the bytes of a cycle's id that is a UUID. Any other id is unique only within its
 * conversation: then the first 16 bytes of the SHA-256 of `<conversation>/<cycle>`.
 */
export function traceIdOf({ conversationId, cycleId }: TurnId): string {
  if (UUID.test(cycleId)) return cycleId.replaceAll("-", "").toLowerCase();
  return createHash("sha256").update(`${conversationId}/${cycleId}`).digest("hex").slice(0, 32);
}

/** The id of the span of the whole turn, the parent of all others: the last 8 bytes of the trace's id. */
export const rootSpanIdOf = (traceId: string): string => traceId.slice(16);
