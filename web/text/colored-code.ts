/**
 * Owns: the colours of one block of code on the page: asks the highlighting worker for the pieces that have changed, a
 * few at a time, and keeps what is complete for those who show the code again. It is another worker than the one that
 * lexes: to load and compile a grammar takes long.
 */
import { BoundedCache } from "./bounded-cache.ts";
import type { Runs } from "./highlight.ts";
import type { Language } from "./languages.ts";
import type { Request } from "./messages.ts";
import { TextWorkerClient, type Job, type Result } from "./text-worker-client.ts";

/** Milliseconds for some pieces. The first ones in a language take half a second: its grammar is compiled. */
const HIGHLIGHT_LIMIT_MS = 5000;
/** Some hundred elements for the page to make. */
const PIECES_AT_ONCE = 2;
/** UTF-16 code units. Longer code has no colours. */
const MAX_LENGTH = 300_000;
const CACHED_LENGTH = 500_000;

/** The colours of a piece; good for whatever begins with the same text. */
export type ColoredPiece = { readonly text: string; readonly runs: Runs };

const highlighter = new TextWorkerClient(HIGHLIGHT_LIMIT_MS);
const finished = new BoundedCache<readonly ColoredPiece[]>(CACHED_LENGTH);
let lastId = 0;

const keyOf = (language: Language, pieces: readonly string[]): string => `${language}\n${pieces.join("")}`;

/** What is known of the colours of some code without asking. */
export const finishedColors = (
  language: Language | null,
  pieces: readonly string[],
): readonly ColoredPiece[] => (language === null ? [] : (finished.get(keyOf(language, pieces)) ?? []));

export class ColoredCode implements Job {
  readonly isUrgent = false;
  readonly #id = ++lastId;
  #language: Language | null = null;
  #pieces: readonly string[] = [];
  #colored: readonly ColoredPiece[] = [];
  /** Pieces that the worker has read, from the first on. */
  #known = 0;
  #asked: { readonly from: number; readonly pieces: readonly string[] } | null = null;
  #isGivenUp = false;
  #watcher: ((colored: readonly ColoredPiece[]) => void) | null = null;

  /**
   * @param watcher gets the colours of the first pieces, more and more of them
   * @returns ends it
   */
  watch(watcher: (colored: readonly ColoredPiece[]) => void): () => void {
    this.#watcher = watcher;
    return () => {
      this.#watcher = null;
      if (this.#language !== null && this.#pieces.length > 0 && this.#nextPiece() === this.#pieces.length)
        finished.set(keyOf(this.#language, this.#pieces), this.#colored);
      highlighter.forget(this.#id);
      this.#asked = null;
      this.#known = 0;
    };
  }

  /** @param language null: it has no colours */
  set(language: Language | null, pieces: readonly string[]): void {
    if (language === this.#language) {
      // What follows a changed piece may have other colours now. Its own are good as long as it grows.
      const same = pieces.findIndex((piece, at) => piece !== this.#pieces[at]);
      if (same !== -1) this.#colored = this.#colored.slice(0, same + 1);
    } else {
      this.#colored = finishedColors(language, pieces);
      this.#known = 0;
    }
    this.#language = language;
    this.#pieces = pieces;
    highlighter.enqueue(this);
  }

  request(): Request | null {
    if (this.#watcher === null || this.#language === null || this.#isGivenUp) return null;
    const length = this.#pieces.reduce((sum, piece) => sum + piece.length, 0);
    const next = this.#nextPiece();
    if (next === this.#pieces.length || length > MAX_LENGTH) return null;
    // It reads what comes before once more, if it does not know it.
    const from = Math.min(next, this.#known);
    const pieces = this.#pieces.slice(from, from + PIECES_AT_ONCE);
    this.#asked = { from, pieces };
    return { kind: "highlight", id: this.#id, language: this.#language, from, pieces };
  }

  settle(result: Result): void {
    const asked = this.#asked;
    this.#asked = null;
    if (asked !== null) this.#use(result, asked);
    if (this.#watcher !== null && result.kind !== "unavailable") highlighter.enqueue(this);
  }

  #use(
    result: Result,
    { from, pieces }: { readonly from: number; readonly pieces: readonly string[] },
  ): void {
    switch (result.kind) {
      case "runs": {
        const colored = result.runs.map((runs, at) => ({ text: pieces[at] ?? "", runs }));
        this.#colored = [
          ...this.#colored.slice(0, from),
          ...colored,
          ...this.#colored.slice(from + colored.length),
        ];
        this.#known = from + pieces.length;
        this.#watcher?.(this.#colored);
        return;
      }
      case "unknown":
        this.#known = 0;
        return;
      case "late":
      case "failed":
      case "blocks":
        this.#isGivenUp = true;
        return;
      case "unavailable":
        return;
    }
  }

  /** The first piece without its colours. */
  #nextPiece(): number {
    const at = this.#pieces.findIndex((piece, index) => piece !== this.#colored[index]?.text);
    return at === -1 ? this.#pieces.length : at;
  }
}
