/**
 * Owns: the form in which a source gives facts on a model, and its check: for the person's file, and for a stored list.
 */
import { z } from "zod";
import { MIN_WINDOW, type ModelFacts } from "./models.ts";

const dollars = z
  .number()
  .min(0)
  .max(1_000_000)
  .refine((value) => Math.abs(value * 1_000 - Math.round(value * 1_000)) < 1e-6, {
    error: "must be dollars per million tokens, with at most three decimals",
  });
const rates = { input: dollars, output: dollars, cacheRead: dollars, cacheCreation: dollars };

/** Everything but the id may be left out: another source may know it. */
export const modelFacts = z.strictObject({
  id: z.string().regex(/^[\w.:/@-]{1,200}$/, "must be letters, digits and ._:/@-, at most 200"),
  name: z.string().min(1).max(200).optional(),
  contextWindow: z.int().min(MIN_WINDOW).optional(),
  maxOutputTokens: z.int().min(1).optional(),
  thinking: z.enum(["adaptive", "none"]).optional(),
  maxImages: z.int().min(0).optional(),
  price: z
    .strictObject({
      ...rates,
      longPrompt: z.strictObject({ ...rates, above: z.int().min(1) }).optional(),
    })
    .optional(),
}) satisfies z.ZodType<ModelFacts>;

/** Reads a stored list. From a list of an older version it takes the entries that are still valid. */
export function readFacts(stored: unknown): ModelFacts[] {
  if (!Array.isArray(stored)) return [];
  return stored.flatMap((entry) => modelFacts.safeParse(entry).data ?? []);
}
