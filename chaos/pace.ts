/**
 * Owns: when a turn may begin. Turns are spread over the faults; the next one begins at once when the faults find too
 * little under way.
 */
export class Pace {
  readonly #turns: number;
  /** The waiting virtual users, by the place of their turn. */
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

  /** Lets the next waiting turn begin. */
  hurry(): void {
    const [next] = [...this.#waiting.keys()].sort((a, b) => a - b);
    if (next !== undefined) this.#open(next);
  }

  // The last turns begin before the last fault.
  #isDue(place: number): boolean {
    return place / this.#turns <= this.#progress / 0.95;
  }

  #open(place: number): void {
    this.#waiting.get(place)?.();
    this.#waiting.delete(place);
  }
}
