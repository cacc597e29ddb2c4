/**
 * Owns: the models that the API knows. A worker stores the provider's list, since this process has no key to ask with.
 * While the database cannot be read, the API uses the last list that it read.
 */
import type { Config } from "../config.ts";
import type { Database } from "../db/connect.ts";
import { readProviderModels } from "../db/models.ts";
import { readFacts } from "../llm/model-facts.ts";
import { Models } from "../llm/models.ts";
import { withTimeout } from "./with-timeout.ts";

/** Milliseconds to wait for the database; a list of models is not worth more. */
const TIMEOUT_MS = 1_000;

/** Each call reads the list again. Never rejects. */
export function createModelRegistry(
  db: Database,
  { models: file, scriptedModel: scripted }: Pick<Config, "models" | "scriptedModel">,
): () => Promise<Models> {
  let current = new Models({ file, scripted });
  const refresh = async (): Promise<void> => {
    const provided = readFacts(await readProviderModels(db));
    if (provided.length > 0) current = new Models({ provided, file, scripted });
  };
  return async () => {
    if (scripted) return current;
    const refreshed = refresh().catch(() => undefined);
    await withTimeout(refreshed, TIMEOUT_MS, undefined);
    return current;
  };
}
