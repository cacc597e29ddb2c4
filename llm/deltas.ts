/**
 * Owns: batching what streams in by the token into notifications that are few and small enough to be published.
 * Live only: what cannot be published is lost, and the stored message says it all later.
 */
import type { Delta } from "./accumulate.ts";

export type DeltaBatcher = {
  readonly push: (delta: Delta) => void;
  /** Publishes what is left; resolves when everything was handed over. Nothing may be pushed afterwards. */
  readonly close: () => Promise<void>;
};

export type DeltaBatcherOptions = {
  /** Called with one at a time, in order; a rejection loses that notification only. */
  readonly publish: (delta: Delta) => Promise<void> | void;
  readonly intervalMs?: number;
  /** Bytes of a notification's text as a JSON string in UTF-8. */
  readonly maxBytes?: number;
};

export function createDeltaBatcher(options: DeltaBatcherOptions): DeltaBatcher {
  const { publish, intervalMs = 30, maxBytes = 7_500 } = options;
  let waiting: Delta[] = [];
  let timer: NodeJS.Timeout | null = null;
  let publishing: Promise<void> = Promise.resolve();
  let busy = false;

  const publishAll = async (deltas: readonly Delta[]): Promise<void> => {
    for (const delta of deltas) {
      for (const text of cut(delta.text, maxBytes)) {
        try {
          await publish({ ...delta, text });
        } catch {
          // Live only.
        }
      }
    }
  };

  const flush = (isLast: boolean): void => {
    timer = null;
    // A slow publisher gets larger batches, not a queue of them.
    if (busy && !isLast) return schedule();
    const deltas = waiting;
    waiting = isLast ? [] : holdBack(deltas);
    busy = true;
    publishing = publishing.then(() => publishAll(deltas)).then(() => void (busy = false));
  };

  const schedule = (): void => {
    timer ??= setTimeout(flush, intervalMs, false);
  };

  return {
    push(delta) {
      const last = waiting.at(-1);
      if (last?.kind === delta.kind && last.index === delta.index) {
        waiting[waiting.length - 1] = { ...last, text: last.text + delta.text };
      } else waiting.push(delta);
      schedule();
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      flush(true);
      return publishing;
    },
  };
}

/** Takes half a surrogate pair off the end; its other half is still to come. */
function holdBack(deltas: Delta[]): Delta[] {
  const last = deltas.at(-1);
  if (last === undefined || !/[\ud800-\udbff]$/.test(last.text)) return [];
  deltas[deltas.length - 1] = { ...last, text: last.text.slice(0, -1) };
  return [{ ...last, text: last.text.slice(-1) }];
}

/** Cuts a text into pieces of at most `maxBytes`, never within a character. */
function* cut(text: string, maxBytes: number): Generator<string> {
  let start = 0;
  let bytes = 0;
  let index = 0;
  for (const character of text) {
    const size = Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes + size > maxBytes && index > start) {
      yield text.slice(start, index);
      start = index;
      bytes = 0;
    }
    bytes += size;
    index += character.length;
  }
  if (index > start) yield text.slice(start);
}
