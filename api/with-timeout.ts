/** Owns: waiting for an answer with a time-out. */

/** The answer, or `otherwise` after `ms` milliseconds. */
export async function withTimeout<T, O>(answer: Promise<T>, ms: number, otherwise: O): Promise<T | O> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<O>((resolve) => (timer = setTimeout(resolve, ms, otherwise)));
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer));
}
