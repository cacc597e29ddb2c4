/**
 * Owns: the size limits of the texts that the machine keeps, and how sizes are counted: in bytes of JSON, the form in
 * which everything is sent and stored.
 * Not here: input from outside, which is bounded before the machine gets it (protocol/formats.ts).
 */

/** Bytes of all messages that wait: every commit carries them. */
export const QUEUE_BYTES = 384 * 1024;
/** Bytes of the tasks of one call. */
export const TASKS_BYTES = 48 * 1024;
/** Bytes of each text of a sub-agent's outcome, and of a summary. */
export const OUTCOME_BYTES = 16 * 1024;
export const SUMMARY_BYTES = 128 * 1024;
/** Bytes of one file's diff, and of all that is kept of a call's changes. */
export const DIFF_BYTES = 32 * 1024;
export const DIFFS_BYTES = 64 * 1024;

const encoder = new TextEncoder();

/** Bytes of the value as JSON. */
export const jsonBytes = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;

/** The first items of a list that have at most `bytes` bytes together. */
export function firstWithin<T>(items: readonly T[], bytes: number): readonly T[] {
  const kept: T[] = [];
  let left = bytes;
  for (const item of items) {
    left -= jsonBytes(item);
    if (left < 0) break;
    kept.push(item);
  }
  return kept;
}

/**
 * The text if it has at most `bytes` bytes as JSON without its quotes; else its longest beginning that does, and a note
 * on how much was cut.
 */
export function bounded(text: string, bytes: number): string {
  const fits = (length: number): boolean => jsonBytes(cut(text, length)) - 2 <= bytes;
  if (text.length <= bytes && fits(text.length)) return text;
  // A character takes at least one byte.
  let [least, most] = [0, Math.min(text.length, bytes)];
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return `${cut(text, least)}\n… ${text.length - least} characters cut …`;
}

/** Half a surrogate pair could not be stored, so it is replaced at the cut. */
const cut = (text: string, length: number): string => text.slice(0, length).toWellFormed();
