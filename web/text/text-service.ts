/** Owns: what a text worker remembers between requests, and how it answers them. */
import { GrowingText } from "./growing-text.ts";
import type { Reading } from "./highlight.ts";
import type { Language } from "./languages.ts";
import type { Answer, FromWorker, Request } from "./messages.ts";

type Lex = Extract<Request, { readonly kind: "lex" }>;
type Highlight = Extract<Request, { readonly kind: "highlight" }>;

export class TextService {
  readonly #send: (message: FromWorker) => void;
  readonly #texts = new Map<number, GrowingText>();
  readonly #readings = new Map<number, Reading>();
  /** null: it is being loaded. */
  readonly #starters = new Map<Language, (() => Reading) | null>();

  /** @param send takes each answer, `loaded` and `unloadable` */
  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  take(request: Request): void {
    switch (request.kind) {
      case "lex":
        this.#send(this.#lex(request));
        return;
      case "highlight":
        this.#send(this.#highlight(request));
        return;
      case "forget":
        this.#texts.delete(request.id);
        this.#readings.delete(request.id);
        return;
    }
  }

  #lex({ id, from, text, streaming }: Lex): Answer {
    const growing = from === 0 ? new GrowingText() : this.#texts.get(id);
    if (growing?.length !== from) return { kind: "unknown" };
    growing.append(text);
    if (streaming) {
      this.#texts.set(id, growing);
      return { kind: "blocks", patches: growing.update() };
    }
    this.#texts.delete(id);
    return { kind: "blocks", patches: growing.finish() };
  }

  #highlight({ id, language, from, pieces }: Highlight): Answer {
    const start = this.#starters.get(language);
    if (start === undefined) {
      this.#starters.set(language, null);
      void this.#load(language);
    }
    if (start === undefined || start === null) return { kind: "loading", language };
    const reading = from === 0 ? start() : this.#readings.get(id);
    if (reading === undefined || reading.length < from) return { kind: "unknown" };
    reading.rewind(from);
    this.#readings.set(id, reading);
    try {
      return { kind: "runs", runs: pieces.map((piece) => reading.read(piece)) };
    } catch {
      // A grammar has an expression that this browser does not know.
      return { kind: "failed" };
    }
  }

  async #load(language: Language): Promise<void> {
    try {
      const { loadLanguage } = await import("./highlight.ts");
      this.#starters.set(language, await loadLanguage(language));
    } catch {
      // It is tried again with the next code in this language; until then, code is shown without colours.
      this.#starters.delete(language);
      this.#send({ kind: "unloadable" });
      return;
    }
    this.#send({ kind: "loaded", language });
  }
}
