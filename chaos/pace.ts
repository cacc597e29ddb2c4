/** Owns: when a turn may begin: spread over the faults, and at once when these find too little under way. */
export class Pace {
  readonly #turns: number;
  /** Those who wait, by the place of their turn. */
  readonly #waiting = new Map<number, () => void>();
  #progress = 0;

  constructor(turns: number) {
    this.#turns = turns;
  }

  /** Resolves when the turn of this place may begin. */
  turn(place: number): Promise<void> {
    if (this.#isDue(place)) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.set(place, resolve));
  }

  /** @param progress the part of the faults that is over, 0 to 1 */
  advance(progress: number): void {
    this.#progress = progress;
    for (const place of this.#waiting.keys()) if (this.#isDue(place)) this.#open(place);
  }

  /** Lets the next of those begin who wait. */
  hurry(): void {
    const [next] = [...this.#waiting.keys()].sort((a, b) => a - b);
    if (next !== undefined) this.#open(next);
  }

  // The last ones begin before the last fault.
  #isDue(place: number): boolean {
    return place / this.#turns <= this.#progress / 0.95;
  }

  #open(place: number): void {
    this.#waiting.get(place)?.();
    this.#waiting.delete(place);
  }
}
