/**
 * Owns: how large things may get. Temporal takes at most 2 MiB in one piece and 4 MiB in one answer to a workflow task;
 * a conversation with more than that to say would be stuck for ever, or ended by the server. So whatever can grow is
 * bounded where it comes in, such that the largest transition stays below: a response, its calls once more in the state,
 * a result for each of them, and what waits (test/workflows/large.test.ts).
 */

/** Of one text of a person's as JSON; the API's own limit counts it without its escapes. */
export const TEXT_BYTES = 384 * 1024;
/** Of all messages that wait: they are in the value, and in each commit. */
export const QUEUE_BYTES = 384 * 1024;
/** Of one response. */
export const RESPONSE_BYTES = 768 * 1024;
/** Of all inputs of one response's calls; further ones are not executed. */
export const CALLS_BYTES = 320 * 1024;
/** Calls of one response, and characters of a call's name: each call gets a result, which names it. */
export const MAX_CALLS = 256;
export const MAX_NAME_LENGTH = 200;
/** Of the tasks of one call. */
export const TASKS_BYTES = 48 * 1024;
/** Of each text of a sub-agent's end, and of a summary. */
export const OUTCOME_BYTES = 16 * 1024;
export const SUMMARY_BYTES = 128 * 1024;

const encoder = new TextEncoder();

/** Bytes of the value as JSON, which is how it is sent and stored. */
export const jsonBytes = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;

/** The beginning of the text that has at most so many bytes as JSON, its quotes aside, and what is missing. */
export function bounded(text: string, bytes: number): string {
  const fits = (length: number): boolean => jsonBytes(cut(text, length)) - 2 <= bytes;
  if (text.length <= bytes && fits(text.length)) return text;
  // No character has less than a byte.
  let [least, most] = [0, Math.min(text.length, bytes)];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return `${cut(text, least)}\n… ${text.length - least} characters cut …`;
}

/** Between characters: half of one could not be stored. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();
