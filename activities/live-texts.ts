/** Owns: the live texts of this process, by conversation, so that one can be told again. */
import { LiveText, type LiveTextOptions } from "./live-text.ts";

type Open = Pick<LiveText<unknown>, "tellAgain">;

export class LiveTexts {
  readonly #open = new Map<string, Set<Open>>();

  /** Performs work that has live text. What is left of the text is published afterwards; nobody waits for that. */
  async during<Source, T>(
    conversationId: string,
    options: LiveTextOptions<Source>,
    work: (text: LiveText<Source>) => Promise<T>,
  ): Promise<T> {
    const text = new LiveText(options);
    const all = this.#open.get(conversationId) ?? new Set();
    this.#open.set(conversationId, all.add(text));
    try {
      return await work(text);
    } finally {
      all.delete(text);
      if (all.size === 0) this.#open.delete(conversationId);
      void text.close();
    }
  }

  tellAgain(conversationId: string): void {
    for (const text of this.#open.get(conversationId) ?? []) text.tellAgain();
  }

  tellAllAgain(): void {
    for (const id of this.#open.keys()) this.tellAgain(id);
  }
}
