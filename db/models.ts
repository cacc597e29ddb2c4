/**
 * Owns: the list of models that the provider gave last, so that every process has it, also without the provider.
 * Not here: what is in it (llm/).
 */
import { sql } from "drizzle-orm";
import type { Json } from "../machine/message.ts";
import type { Database } from "./connect.ts";
import { encodeJson } from "./json.ts";
import { providerModels } from "./schema.ts";

/** null: there was never one. */
export async function readProviderModels(db: Database): Promise<unknown> {
  const [row] = await db.orm.select({ list: providerModels.list }).from(providerModels);
  return row?.list ?? null;
}

/** Takes the place of the one before. */
export async function storeProviderModels(db: Database, list: readonly object[]): Promise<void> {
  const json = JSON.parse(encodeJson(list)) as Json;
  await db.orm
    .insert(providerModels)
    .values({ list: json })
    .onConflictDoUpdate({ target: providerModels.only, set: { list: json, updatedAt: sql`now()` } });
}
