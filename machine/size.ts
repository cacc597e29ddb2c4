/**
 * Owns: how large things may get. Temporal takes at most 2 MiB in one piece, and a conversation with more than that to
 * say would be stuck for ever; so whatever can grow is bounded where it comes in, and together it stays below.
 */

/** Of one text of a person's as JSON; the API's own limit counts it without its escapes. */
export const TEXT_BYTES = 512 * 1024;
/** Of all messages that wait: they are in the value, and in each commit. */
export const QUEUE_BYTES = 512 * 1024;
/** Of all inputs of one response's calls; further ones are not executed. */
export const CALLS_BYTES = 512 * 1024;
/** Of one response. */
export const RESPONSE_BYTES = 1024 * 1024;
/** Of one commit, unless a single batch has more. */
export const COMMIT_BYTES = 1024 * 1024;

const encoder = new TextEncoder();

/** Bytes of the value as JSON, which is how it is sent and stored. */
export const jsonBytes = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;
