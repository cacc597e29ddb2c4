/** Owns: limiting how much runs at a time. The rest waits its turn, in order, until its signal aborts. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(size: number) {
    this.#free = size;
  }

  /** @throws the signal's reason when it aborts before the turn has come. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next === undefined) this.#free++;
      else next();
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(enter);
        reject(signal?.reason as Error);
      };
      const enter = (): void => {
        this.#waiting.delete(enter);
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      this.#waiting.add(enter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }
}
