/** Owns: repeatable chance: the same seed gives the same numbers (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  integer(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  shuffled<T>(values: readonly T[]): T[] {
    const left = [...values];
    const order: T[] = [];
    while (left.length > 0) order.push(...left.splice(this.integer(0, left.length - 1), 1));
    return order;
  }

  /** A generator for another part of the run, which may then draw as many numbers as it likes. */
  fork(): Random {
    return new Random(this.integer(0, 2 ** 32 - 1));
  }
}
