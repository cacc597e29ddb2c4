/** Owns: remembering what could be read again, within bounds: what was used longest ago is forgotten first. */
export class Memory<V> {
  readonly #kept = new Map<string, { readonly value: V; readonly characters: number }>();
  readonly #most: { readonly entries?: number; readonly characters: number };
  #characters = 0;

  /** @param most entries, if they are bounded, and characters of all of them. */
  constructor(most: { readonly entries?: number; readonly characters: number }) {
    this.#most = most;
  }

  get(key: string): V | undefined {
    return this.#kept.get(key)?.value;
  }

  /** Keeps the value, as the one used last, as far as there is room for it. */
  set(key: string, value: V, characters: number): void {
    this.delete(key);
    this.#kept.set(key, { value, characters });
    this.#characters += characters;
    const { entries = Number.POSITIVE_INFINITY } = this.#most;
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= entries && this.#characters <= this.#most.characters) return;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#characters -= this.#kept.get(key)?.characters ?? 0;
    this.#kept.delete(key);
  }
}
