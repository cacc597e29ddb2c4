/**
 * Owns: the limits of an answer, and the error for an answer beyond them. A request with such an answer is not
 * repeated.
 */
import { MAX_RESPONSE_BYTES } from "../protocol/formats.ts";

/** Bytes of an event around the text in it: names, quotes, padding. The provider's events have about 150. */
export const EVENT_OVERHEAD = 256;
/** Bytes of all text in the events of a stream: a whole answer, each of its bytes escaped. */
export const STREAM_TEXT_BYTES = 2 * MAX_RESPONSE_BYTES;
/** Lines of a stream: a delta for each token of the longest answer (128,000), as many pings, and three lines for each. */
export const LINES = 3 * 256 * 1024;
/** The provider sends more than an answer may have. */
export class TooMuch extends Error {
  override readonly name = "TooMuch";

  /** @param what says what is too much: "it is longer than 10 bytes" */
  constructor(what: string) {
    super(`The model's answer could not be kept: ${what}. Send a message to try again.`);
  }
}
