/**
 * Owns: live text of a model or a tool on its way to clients. It is batched, and bounded per second and in what waits
 * for a slow database. Beyond these bounds a gap is marked (architecture, rule 9). The text that is cut here is bounded
 * and kept elsewhere.
 */

export type LiveText<Source> = {
  readonly push: (source: Source, text: string) => void;
  /** Publishes what is left; resolves when everything was handed over. Nothing may be pushed afterwards. */
  readonly close: () => Promise<void>;
};

export type LiveTextOptions<Source> = {
  /** Called with one text at a time, in order; a rejection loses that text only. */
  readonly publish: (source: Source, text: string) => Promise<void>;
  /** Whether texts of both sources may be joined into one. */
  readonly isSame: (a: Source, b: Source) => boolean;
  readonly intervalMs?: number;
};

/** Characters that are published in a second, and characters that may wait. */
export const RATE = 64 * 1024;
/** Pieces that may wait: each becomes a notification, however short it is. */
const PIECES = 64;
export const GAP = "\n[… too fast to show …]\n";

type Piece<Source> = { readonly source: Source; text: string };

export function createLiveText<Source>(options: LiveTextOptions<Source>): LiveText<Source> {
  const { publish, isSame, intervalMs = 30 } = options;
  let waiting: Piece<Source>[] = [];
  let waitingChars = 0;
  let timer: NodeJS.Timeout | null = null;
  let publishing: Promise<void> = Promise.resolve();
  let busy = false;
  let secondStart = performance.now();
  let inSecond = 0;
  let hasGap = false;

  const publishAll = async (pieces: readonly Piece<Source>[]): Promise<void> => {
    for (const { source, text } of pieces) await publish(source, text).catch(() => undefined);
  };

  const flush = (isLast: boolean): void => {
    timer = null;
    // A slow publisher gets larger batches, not a queue of them.
    if (busy && !isLast) return schedule();
    const pieces = waiting;
    waiting = isLast ? [] : holdBack(pieces);
    waitingChars = waiting.length;
    busy = true;
    publishing = publishing.then(() => publishAll(pieces)).then(() => void (busy = false));
  };

  const schedule = (): void => {
    timer ??= setTimeout(flush, intervalMs, false);
  };

  const add = (source: Source, text: string): void => {
    const last = waiting.at(-1);
    if (last !== undefined && isSame(last.source, source)) last.text += text;
    else waiting.push({ source, text });
    waitingChars += text.length;
    schedule();
  };

  return {
    push(source, text) {
      const now = performance.now();
      if (now - secondStart >= 1_000) {
        secondStart = now;
        inSecond = 0;
        hasGap = false;
      }
      if (hasGap) return;
      const room = waiting.length < PIECES ? RATE - Math.max(inSecond, waitingChars) : 0;
      inSecond += text.length;
      hasGap = text.length > room;
      add(source, hasGap ? text.slice(0, Math.max(room, 0)).toWellFormed() + GAP : text);
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      flush(true);
      return publishing;
    },
  };
}

/** Takes half a surrogate pair off the end; its other half is still to come. */
function holdBack<Source>(pieces: readonly Piece<Source>[]): Piece<Source>[] {
  const last = pieces.at(-1);
  if (last === undefined || !/[\ud800-\udbff]$/.test(last.text)) return [];
  const held = { source: last.source, text: last.text.slice(-1) };
  last.text = last.text.slice(0, -1);
  return [held];
}
