/**
 * Owns: what the API knows of models: what a worker stored of the provider's list (this process has no key to ask
 * with), and while the database cannot be read, what it knew before.
 */
import type { Config } from "../config.ts";
import type { Database } from "../db/connect.ts";
import { readProviderModels } from "../db/models.ts";
import { readFacts } from "../llm/model-facts.ts";
import { Models } from "../llm/models.ts";
import { withTimeout } from "./with-timeout.ts";

/** Milliseconds to wait for the database; a list of models is not worth more. */
const TIMEOUT_MS = 1_000;

/** Each call looks again. Never rejects. */
export function knownModels(
  db: Database,
  { models: file, scriptedModel: scripted }: Pick<Config, "models" | "scriptedModel">,
): () => Promise<Models> {
  let known = new Models({ file, scripted });
  const look = async (): Promise<void> => {
    const provided = readFacts(await readProviderModels(db));
    if (provided.length > 0) known = new Models({ provided, file, scripted });
  };
  return async () => {
    if (scripted) return known;
    const looked = look().catch(() => undefined);
    await withTimeout(looked, TIMEOUT_MS, undefined);
    return known;
  };
}
