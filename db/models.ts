/**
 * Owns: storing the last list of models from the provider, so that every process has it, also when the provider cannot
 * be reached.
 * Not here: what is in the list (llm/).
 */
import { sql } from "drizzle-orm";
import type { Json } from "../machine/message.ts";
import type { Database } from "./connect.ts";
import { encodeJson } from "./json.ts";
import { providerModels } from "./schema.ts";

/** null: no list was ever stored. */
export async function readProviderModels(db: Database): Promise<unknown> {
  const [row] = await db.orm.select({ list: providerModels.list }).from(providerModels);
  return row?.list ?? null;
}

/** Replaces the previous list. */
export async function storeProviderModels(db: Database, list: readonly object[]): Promise<void> {
  const json = JSON.parse(encodeJson(list)) as Json;
  await db.orm
    .insert(providerModels)
    .values({ list: json })
    .onConflictDoUpdate({ target: providerModels.only, set: { list: json, updatedAt: sql`now()` } });
}
