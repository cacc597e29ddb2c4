/**
 * Owns: telling the user about work that takes long. Work that ends within a second is not mentioned. Longer work is,
 * with its latest news every few seconds.
 */

/** Receives one sentence at a time, and decides which of them to print. */
export type Report = (sentence: string) => void;

export type ProgressOptions = {
  readonly write: (line: string) => void;
  /** Milliseconds of silence before the first line; 1000 by default. */
  readonly delay?: number;
  /** Milliseconds between two lines; 4000 by default. */
  readonly interval?: number;
};

/** Runs `work`, which reports its news. Resolves and rejects as `work` does. */
export async function withProgress<T>(
  what: string,
  options: ProgressOptions,
  work: (report: Report) => Promise<T>,
): Promise<T> {
  const { write, delay = 1000, interval = 4000 } = options;
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`;
  let news = "";
  let lines = 0;
  const tell = () => {
    // Old news with a new time still shows that the work goes on.
    write(news === "" ? `${what} … ${seconds()}` : `${what}: ${news} … ${seconds()}`);
    lines++;
    timer = setTimeout(tell, interval);
  };
  let timer = setTimeout(tell, delay);
  try {
    const result = await work((sentence) => {
      news = sentence;
    });
    if (lines > 0) write(`${what}: done, ${seconds()}`);
    return result;
  } finally {
    clearTimeout(timer);
  }
}
