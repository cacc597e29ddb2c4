/**
 * Owns: telling the person what takes long. What is done within a second is not mentioned; what takes longer is,
 * with its latest news every few seconds.
 */

/** Told one sentence at a time; it decides itself which of them are worth a line. */
export type Report = (sentence: string) => void;

export type ProgressOptions = {
  readonly write: (line: string) => void;
  /** Milliseconds of silence before the first line; 1000 by default. */
  readonly patience?: number;
  /** Milliseconds between two lines; 4000 by default. */
  readonly interval?: number;
};

/** Runs `work`, which reports its news; the result or the failure is the work's own. */
export async function withProgress<T>(
  what: string,
  options: ProgressOptions,
  work: (report: Report) => Promise<T>,
): Promise<T> {
  const { write, patience = 1000, interval = 4000 } = options;
  const startedAt = performance.now();
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`;
  let news = "";
  let lines = 0;
  const tell = () => {
    // Old news with a new time still shows that it is alive.
    write(news === "" ? `${what} … ${seconds()}` : `${what}: ${news} … ${seconds()}`);
    lines++;
    timer = setTimeout(tell, interval);
  };
  let timer = setTimeout(tell, patience);
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
