/** Owns: how much of an answer is taken, and the error that says it was more. Such an answer is not asked for again. */
import { MAX_RESPONSE_BYTES } from "../protocol/formats.ts";

/** Bytes of an event around the text in it: names, quotes, padding. The provider's have about 150. */
export const EVENT_OVERHEAD = 256;
/** Bytes of all text in the events of a stream: a whole answer, each of its bytes escaped. */
export const STREAM_TEXT_BYTES = 2 * MAX_RESPONSE_BYTES;
/** Lines of a stream: a delta for each token of the longest answer (128,000), as many pings, and three lines for each. */
export const LINES = 3 * 256 * 1024;
/** The provider sends more than an answer may have. */
export class TooMuch extends Error {
  override readonly name = "TooMuch";

  /** @param what of the answer is too much: "it is longer than 10 bytes" */
  constructor(what: string) {
    super(`The model's answer could not be kept: ${what}. Send a message to try again.`);
  }
}
