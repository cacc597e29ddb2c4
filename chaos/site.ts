/**
 * Owns: the folder of a run, and the end of everything that was started in it, however the run ends: orderly first, and
 * what is left over then is complained of, and killed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killLeftovers, leftoversOf } from "./leftovers.ts";

/** What ends a part of it; the last one that was added comes first. */
export type Ends = (() => Promise<unknown>)[];

/**
 * Performs a run in a folder of its own.
 *
 * @returns what it returned, and a sentence for each process that was left over.
 * @throws what `interrupted` was aborted with, when everything that was started has ended.
 */
export async function onSite<T>(
  perform: (folder: string, ends: Ends) => Promise<T>,
  interrupted: AbortSignal,
): Promise<{ readonly result: T; readonly leftovers: readonly string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "bedrock-chaos-"));
  const ends: Ends = [];
  const interruption = new Promise<never>((_resolve, reject) => {
    interrupted.addEventListener("abort", () => reject(interrupted.reason as Error), { once: true });
  });
  try {
    const result = await Promise.race([perform(folder, ends), interruption]).finally(async () => {
      for (const end of ends.reverse()) await end();
    });
    return { result, leftovers: await leftoversOf(folder) };
  } finally {
    killLeftovers(folder);
    rmSync(folder, { recursive: true, force: true });
  }
}
