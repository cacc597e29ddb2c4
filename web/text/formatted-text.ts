/**
 * Owns: the formatted form of one text on the page: asks the lexing worker whenever the text has changed, once at a
 * time, and keeps what is finished for those who show the text again.
 */
import { BoundedCache } from "./bounded-cache.ts";
import type { Request } from "./messages.ts";
import type { Block } from "./model.ts";
import { applyPatches } from "./patch.ts";
import { TextWorkerClient, type Job, type Result } from "./text-worker-client.ts";

/** Milliseconds. A text of 200 kB takes a sixth of it; some texts would take minutes. */
const LEX_LIMIT_MS = 1000;
/** UTF-16 code units. A longer text is shown as it is. */
const MAX_LENGTH = 1_000_000;
/** UTF-16 code units. The blocks of a text take some ten times as much. */
const CACHED_LENGTH = 1_000_000;

/** `blocks` are of `source`; null: it is shown as it is. */
export type Formatted = { readonly source: string; readonly blocks: readonly Block[] | null };

const lexer = new TextWorkerClient(LEX_LIMIT_MS);
const finished = new BoundedCache<Formatted>(CACHED_LENGTH);
let lastId = 0;

/** What is known of a complete text without asking. */
export const finishedText = (text: string): Formatted | null => finished.get(text) ?? null;

type Asked = { readonly text: string; readonly streaming: boolean; readonly from: number };

export class FormattedText implements Job {
  readonly #id = ++lastId;
  #text = "";
  #streaming = false;
  /** The last answer, and for what. */
  #formatted: Formatted | null = null;
  #isFinal = false;
  /** The watcher has no form yet: it shows the plain text. */
  #isPlain = true;
  /** What the worker is busy with. */
  #asked: Asked | null = null;
  /** null: nobody watches. */
  #watcher: ((formatted: Formatted) => void) | null = null;

  get isUrgent(): boolean {
    return this.#streaming;
  }

  /**
   * @param watcher gets each new form
   * @returns ends it
   */
  watch(watcher: (formatted: Formatted) => void): () => void {
    this.#watcher = watcher;
    this.#isPlain = true;
    return () => {
      this.#watcher = null;
      lexer.forget(this.#id);
      // The worker begins again for the next one.
      this.#asked = null;
      this.#formatted = null;
      this.#isFinal = false;
    };
  }

  /** @param streaming more text may follow */
  set(text: string, streaming: boolean): void {
    this.#text = text;
    this.#streaming = streaming;
    const known = streaming ? null : finishedText(text);
    if (known !== null) this.#tell(known, true);
    else if (text.length > MAX_LENGTH || this.#isGivenUp()) this.#giveUp();
    else lexer.enqueue(this);
  }

  request(): Request | null {
    if (this.#watcher === null || this.#isDone()) return null;
    const from = this.#knownLength();
    this.#asked = { text: this.#text, streaming: this.#streaming, from };
    return { kind: "lex", id: this.#id, from, text: this.#text.slice(from), streaming: this.#streaming };
  }

  settle(result: Result): void {
    const asked = this.#asked;
    this.#asked = null;
    // Else its watcher has left, and perhaps come again.
    if (asked !== null) this.#use(result, asked);
    if (this.#watcher !== null && result.kind !== "unavailable" && !this.#isDone()) lexer.enqueue(this);
  }

  #use(result: Result, asked: Asked): void {
    switch (result.kind) {
      case "blocks": {
        const before = asked.from === 0 ? [] : (this.#formatted?.blocks ?? []);
        this.#tell({ source: asked.text, blocks: applyPatches(before, result.patches) }, !asked.streaming);
        return;
      }
      case "unknown":
        this.#formatted = null;
        return;
      case "late":
      case "failed":
      case "runs":
        this.#giveUp();
        return;
      // It is asked for again when it changes.
      case "unavailable":
        return;
    }
  }

  #isDone(): boolean {
    const formatted = this.#formatted;
    if (formatted === null || this.#isFinal !== !this.#streaming) return false;
    return formatted.source === this.#text || this.#isGivenUp();
  }

  /** A longer text would not be formatted either. */
  #isGivenUp(): boolean {
    const formatted = this.#formatted;
    return formatted?.blocks === null && this.#text.startsWith(formatted.source);
  }

  /** What the worker has of the text, and its blocks are here; 0: it begins again. */
  #knownLength(): number {
    const formatted = this.#formatted;
    return formatted !== null && !this.#isFinal && this.#text.startsWith(formatted.source)
      ? formatted.source.length
      : 0;
  }

  #giveUp(): void {
    this.#tell({ source: this.#text, blocks: null }, !this.#streaming);
  }

  #tell(formatted: Formatted, isFinal: boolean): void {
    this.#formatted = formatted;
    this.#isFinal = isFinal;
    if (isFinal) finished.set(formatted.source, formatted);
    // All of the text is shown plain: a form of less would take away what a person sees. Another one is asked for.
    if (this.#isPlain && formatted.source.length < this.#text.length) return;
    this.#isPlain = false;
    this.#watcher?.(formatted);
  }
}
