/**
 * Owns: the live text of one request or one tool on its way to clients. It is batched, and bounded per second and in
 * what waits for a slow database. What is left out beyond these bounds leaves a gap in the offsets (architecture, rule
 * 9). The newest part is kept, so that a client that comes later can be told it.
 */
import { KEPT_LIVE_CHARS } from "../protocol/formats.ts";

/** A text and where it belongs in its source; offsets count UTF-16 code units. */
type Piece<Source> = { readonly source: Source; readonly offset: number; readonly text: string };

export type LiveTextOptions<Source> = {
  /**
   * Called with one piece at a time, in order; a rejection loses that piece only.
   *
   * @param after the end of the piece of this source that was published before.
   * @param again it may have been published before.
   */
  readonly publish: (piece: Piece<Source>, after: number, again: boolean) => Promise<void>;
  /** Texts of one source follow one another. */
  readonly keyOf: (source: Source) => string;
  readonly intervalMs?: number;
};

/** Characters that are published in a second, and characters that may wait. */
export const RATE = 64 * 1024;
/** Pieces that may wait: each becomes a notification, however short it is. */
const PIECES = 64;

type Waiting<Source> = { readonly source: Source; readonly offset: number; text: string };

export class LiveText<Source> {
  readonly #options: LiveTextOptions<Source>;
  #waiting: Waiting<Source>[] = [];
  #waitingChars = 0;
  #timer: NodeJS.Timeout | null = null;
  #publishing: Promise<void> = Promise.resolve();
  #busy = 0;
  #secondStart = performance.now();
  #inSecond = 0;
  #hasGap = false;
  /** Where the next text of each source begins, and where the last published one ended. */
  readonly #ends = new Map<string, number>();
  readonly #published = new Map<string, number>();
  #kept: Waiting<Source>[] = [];
  #keptChars = 0;

  constructor(options: LiveTextOptions<Source>) {
    this.#options = options;
  }

  push(source: Source, text: string): void {
    const now = performance.now();
    if (now - this.#secondStart >= 1_000) {
      this.#secondStart = now;
      this.#inSecond = 0;
      this.#hasGap = false;
    }
    const key = this.#options.keyOf(source);
    const offset = this.#ends.get(key) ?? 0;
    this.#ends.set(key, offset + text.length);
    if (this.#hasGap) return;
    const room = this.#waiting.length < PIECES ? RATE - Math.max(this.#inSecond, this.#waitingChars) : 0;
    this.#inSecond += text.length;
    this.#hasGap = text.length > room;
    const shown = this.#hasGap ? text.slice(0, Math.max(room, 0)).toWellFormed() : text;
    if (shown === "") return;
    join(this.#waiting, { source, offset, text: shown }, this.#options.keyOf);
    this.#waitingChars += shown.length;
    this.#schedule();
  }

  /** Publishes once more what is kept: somebody has missed it. */
  tellAgain(): void {
    this.#send(this.#take(false));
    const kept = this.#kept.map((piece) => ({ ...piece }));
    this.#enqueue(async () => {
      for (const piece of kept) await this.#options.publish(piece, piece.offset, true).catch(() => undefined);
    });
  }

  /** Publishes what is left; resolves when everything was handed over. Nothing may be pushed afterwards. */
  close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#send(this.#take(true));
    return this.#publishing;
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      // A slow publisher gets larger batches, not a queue of them.
      if (this.#busy > 0) this.#schedule();
      else this.#send(this.#take(false));
    }, this.#options.intervalMs ?? 30);
  }

  #take(isLast: boolean): readonly Waiting<Source>[] {
    const pieces = this.#waiting;
    this.#waiting = isLast ? [] : holdBack(pieces);
    this.#waitingChars = this.#waiting.reduce((sum, { text }) => sum + text.length, 0);
    return pieces.filter(({ text }) => text !== "");
  }

  #send(pieces: readonly Waiting<Source>[]): void {
    if (pieces.length === 0) return;
    const { keyOf, publish } = this.#options;
    for (const piece of pieces) this.#keep({ ...piece });
    this.#enqueue(async () => {
      for (const piece of pieces) {
        const key = keyOf(piece.source);
        const after = this.#published.get(key) ?? 0;
        this.#published.set(key, piece.offset + piece.text.length);
        await publish(piece, after, false).catch(() => undefined);
      }
    });
  }

  #enqueue(work: () => Promise<void>): void {
    this.#busy++;
    this.#publishing = this.#publishing.then(work).finally(() => this.#busy--);
  }

  #keep(piece: Waiting<Source>): void {
    join(this.#kept, piece, this.#options.keyOf);
    this.#keptChars += piece.text.length;
    while (this.#keptChars > KEPT_LIVE_CHARS) {
      const [oldest, ...rest] = this.#kept;
      if (oldest === undefined) return;
      const surplus = this.#keptChars - KEPT_LIVE_CHARS;
      const { source, offset, text } = oldest;
      this.#keptChars -= Math.min(surplus, text.length);
      this.#kept =
        surplus >= text.length
          ? rest
          : [{ source, offset: offset + surplus, text: text.slice(surplus).toWellFormed() }, ...rest];
    }
  }
}

/** Appends a piece; one that follows the last one of the same source becomes part of it. */
function join<Source>(
  pieces: Waiting<Source>[],
  piece: Waiting<Source>,
  keyOf: (source: Source) => string,
): void {
  const last = pieces.at(-1);
  const follows =
    last !== undefined &&
    keyOf(last.source) === keyOf(piece.source) &&
    last.offset + last.text.length === piece.offset;
  if (follows) last.text += piece.text;
  else pieces.push(piece);
}

/** Takes half a surrogate pair off the end; its other half is still to come. */
function holdBack<Source>(pieces: readonly Waiting<Source>[]): Waiting<Source>[] {
  const last = pieces.at(-1);
  if (last === undefined || !/[\ud800-\udbff]$/.test(last.text)) return [];
  const { source, offset, text } = last;
  last.text = text.slice(0, -1);
  return [{ source, offset: offset + text.length - 1, text: text.slice(-1) }];
}
