/**
 * Owns: how large the texts may get that the machine keeps, and how size is counted: in bytes of JSON, which is how
 * everything is sent and stored.
 * Not here: what comes from outside is bounded before the machine sees it (protocol/formats.ts).
 */

/** Bytes of all messages that wait: every commit carries them. */
export const QUEUE_BYTES = 384 * 1024;
/** Bytes of the tasks of one call. */
export const TASKS_BYTES = 48 * 1024;
/** Bytes of each text of a sub-agent's outcome, and of a summary. */
export const OUTCOME_BYTES = 16 * 1024;
export const SUMMARY_BYTES = 128 * 1024;

const encoder = new TextEncoder();

/** Bytes of the value as JSON. */
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
