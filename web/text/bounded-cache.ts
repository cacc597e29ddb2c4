/** Owns: a cache by text whose keys have a bounded length together; what was not used for longest goes first. */

export class BoundedCache<Value> {
  readonly #limit: number;
  #length = 0;
  readonly #values = new Map<string, Value>();

  /** @param limit UTF-16 code units of all keys */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): Value | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return undefined;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  set(key: string, value: Value): void {
    if (this.#values.delete(key)) this.#length -= key.length;
    this.#values.set(key, value);
    this.#length += key.length;
    for (const oldest of this.#values.keys()) {
      if (this.#length <= this.#limit) return;
      this.#values.delete(oldest);
      this.#length -= oldest.length;
    }
  }
}
