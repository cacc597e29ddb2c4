/** Owns: bringing a database's schema up to date. */

/**
 * Applies the migrations that are missing; processes that do so at the same time wait for one another.
 *
 * @param onProgress told one sentence a step.
 */
export async function migrate(url: string, onProgress?: (sentence: string) => void): Promise<void> {
  throw new Error("todo");
}
