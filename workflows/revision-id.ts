/**
 * Owns: the id of a revision: a digest of the id before it, its time and its cause. A run whose history was rolled back
 * (a Temporal database from a backup) draws the same deterministic random numbers again, but gets other events. So its
 * revisions get other ids than the committed revisions with the same numbers.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/**
 * The id is the same in every replay, and no other history makes it.
 *
 * @param previous the id of the revision before, or of the conversation.
 * @param at milliseconds since the Unix epoch, by the workflow's clock.
 * @param cause JSON: the event, or whatever else leads to the revision.
 * @returns a UUID of version 8 (RFC 9562).
 */
export function newRevisionId(previous: string, at: number, cause: unknown): string {
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
