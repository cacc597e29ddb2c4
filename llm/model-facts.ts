/**
 * Owns: the form in which a source gives facts on a model, and its check: for the person's file, and for a stored list.
 */
import { z } from "zod";
import { MIN_WINDOW, type ModelFacts } from "./models.ts";

/** Everything but the id may be left out: another source may know it. */
export const modelFacts = z.strictObject({
  id: z.string().regex(/^[\w.:/@-]{1,200}$/, "must be letters, digits and ._:/@-, at most 200"),
  name: z.string().min(1).max(200).optional(),
  contextWindow: z.int().min(MIN_WINDOW).optional(),
  maxOutputTokens: z.int().min(1).optional(),
  thinking: z.enum(["adaptive", "none"]).optional(),
  maxImages: z.int().min(0).optional(),
}) satisfies z.ZodType<ModelFacts>;

/** Reads a stored list. From a list of an older version it takes the entries that are still valid. */
export function readFacts(stored: unknown): ModelFacts[] {
  if (!Array.isArray(stored)) return [];
  return stored.flatMap((entry) => modelFacts.safeParse(entry).data ?? []);
}
