/**
 * Owns: keeping a bounded part of an unbounded output while it is read: its beginning and its end. The memory for it is
 * bounded, however much a command prints.
 */

export type OutputBuffer = {
  readonly add: (text: string) => void;
  /** What was kept, with a note in place of what was cut. */
  readonly finish: () => { readonly text: string; readonly truncated: boolean; readonly totalBytes: number };
};

/** @param limitBytes bytes of UTF-8 that are kept, the note not counted: half from the beginning, half from the end. */
export function createOutputBuffer(limitBytes: number): OutputBuffer {
  const headLimit = Math.floor(limitBytes / 2);
  const tailLimit = limitBytes - headLimit;
  const head: Buffer[] = [];
  let headBytes = 0;
  /** The latest chunks, at most twice `tailLimit` bytes. */
  let tail: Buffer[] = [];
  let tailBytes = 0;
  let totalBytes = 0;

  const addToTail = (chunk: Buffer): void => {
    tail.push(chunk);
    tailBytes += chunk.length;
    // Many small chunks would make a long list, so they become one buffer. At most twice the limit is ever held.
    if (tailBytes > 2 * tailLimit) {
      const kept = Buffer.concat(tail).subarray(-tailLimit);
      tail = [Buffer.from(kept)];
      tailBytes = kept.length;
    }
  };

  return {
    add(text) {
      let chunk = Buffer.from(text);
      totalBytes += chunk.length;
      if (headBytes < headLimit) {
        const part = chunk.subarray(0, headLimit - headBytes);
        head.push(part);
        headBytes += part.length;
        chunk = chunk.subarray(part.length);
      }
      if (chunk.length > 0) addToTail(chunk);
    },
    finish() {
      const start = Buffer.concat(head);
      const end = Buffer.concat(tail);
      if (totalBytes <= limitBytes) {
        return { text: Buffer.concat([start, end]).toString(), truncated: false, totalBytes };
      }
      const first = wholeCharacters(start);
      const last = withoutPartialStart(end.subarray(-tailLimit));
      const cut = totalBytes - first.length - last.length;
      return {
        text: `${first.toString()}\n[… ${cut} bytes cut …]\n${last.toString()}`,
        truncated: true,
        totalBytes,
      };
    },
  };
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function withoutPartialStart(bytes: Buffer): Buffer {
  let start = 0;
  while (isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}

/** Drops a last character that is not complete; the bytes are valid UTF-8 up to there. */
function wholeCharacters(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > 0 && isContinuation(bytes[start])) start--;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + length > bytes.length ? bytes.subarray(0, start) : bytes;
}
