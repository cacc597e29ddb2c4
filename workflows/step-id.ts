/**
 * Owns: the id of a step: a digest of the step before it, of its time and of what led to it. A run whose history was
 * rolled back (a Temporal database from a backup) repeats its deterministic random numbers, but not what happens to it:
 * with this id, a step of such a run is never taken for the step of the same number that was committed before.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * The same in every replay, and in no other history.
 *
 * @param previous the id of the step before, or of the conversation.
 * @param at milliseconds since the Unix epoch, by the workflow's clock.
 * @param cause JSON: the event, or whatever else leads to the step.
 * @returns a UUID of version 8 (RFC 9562).
 */
export function stepId(previous: string, at: number, cause: unknown): string {
  const digest = bytesToHex(sha256(utf8ToBytes(JSON.stringify([previous, at, cause]))));
  const variant = (8 + (Number.parseInt(digest.charAt(16), 16) % 4)).toString(16);
  return [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(17, 20)}`,
    digest.slice(20, 32),
  ].join("-");
}
