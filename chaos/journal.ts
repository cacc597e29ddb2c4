/**
 * Owns: the record of the faults and their times. It is kept with the evidence of a run, and tells whether something
 * happened amid faults.
 */

type Entry = { readonly name: string; readonly from: number; to: number | null };

/** Milliseconds that the product may need to recover from a fault. */
const RECOVERY_MS = 5_000;

export class Journal {
  readonly #entries: Entry[] = [];

  /** Performs a fault and notes when it began and ended. */
  async during<T>(name: string, fault: () => Promise<T>): Promise<T> {
    const entry: Entry = { name, from: Date.now(), to: null };
    this.#entries.push(entry);
    try {
      return await fault();
    } finally {
      entry.to = Date.now();
    }
  }

  /** The faults other than `except` that were still going on shortly before that moment, or later. */
  since(moment: Date, except: string): readonly string[] {
    const from = moment.getTime() - RECOVERY_MS;
    return this.#entries.flatMap(({ name, to }) =>
      name !== except && (to ?? Infinity) > from ? [name] : [],
    );
  }

  /** One line a fault. */
  toString(): string {
    const time = (at: number | null): string => (at === null ? "…" : new Date(at).toISOString());
    return this.#entries.map(({ name, from, to }) => `${time(from)} ${time(to)} ${name}\n`).join("");
  }
}
