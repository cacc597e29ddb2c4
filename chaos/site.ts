/**
 * Owns: the folder of a run, and the end of everything that was started in it, however the run ends. First everything
 * is ended in order. Then processes that are left over are reported and killed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killLeftovers, leftoversOf } from "./leftovers.ts";

/** Functions that each end a part of the run; the last one that was added comes first. */
export type Ends = (() => Promise<unknown>)[];

/**
 * Performs a run in a folder of its own.
 *
 * @returns the run's result, and a sentence for each process that was left over.
 * @throws the reason of `interrupted`, when everything that was started has ended.
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
