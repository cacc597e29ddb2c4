/** Owns: waiting for an answer, but not for long. */

/** The answer, or after so many milliseconds the other. */
export async function withTimeout<T, O>(answer: Promise<T>, ms: number, otherwise: O): Promise<T | O> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<O>((resolve) => (timer = setTimeout(resolve, ms, otherwise)));
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer));
}
