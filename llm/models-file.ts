/** Owns: the file in which a person corrects facts on models, or adds models that no other source knows. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { modelFacts } from "./model-facts.ts";
import type { ModelFacts } from "./models.ts";

const schema = z.strictObject({ models: z.array(modelFacts) });

/**
 * Reads `{ "models": [{ "id", … }] }`.
 *
 * @throws Error with a sentence for the person when it cannot be read or is not of that form.
 */
export function readModelsFile(path: string): ModelFacts[] {
  const parsed = schema.safeParse(parse(path));
  if (parsed.success) return parsed.data.models;
  throw new Error(`${path} is no list of models.\n${z.prettifyError(parsed.error)}`);
}

function parse(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`${path} cannot be read (${code}).`, { cause: error });
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Error(`${path} is no JSON.`, { cause: error });
  }
}
