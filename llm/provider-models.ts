/** Owns: the provider's own list of models (`GET /v1/models`). */
import { z } from "zod";
import type { ProviderClient } from "./client.ts";
import { readFacts } from "./model-facts.ts";
import { MIN_WINDOW, type ModelFacts } from "./models.ts";

/** More than any list has, so that the list of a provider that pages for ever comes to an end. */
const MAX_MODELS = 1_000;

const supported = z.object({ supported: z.boolean() });

/** The fields that are used. A field that is missing, or not of its type, is ignored. */
const answer = z.object({
  id: z.string(),
  display_name: z.string().optional().catch(undefined),
  max_input_tokens: z.number().positive().optional().catch(undefined),
  max_tokens: z.number().optional().catch(undefined),
  capabilities: z
    .object({
      image_input: supported.optional().catch(undefined),
      thinking: z
        .object({ types: z.object({ adaptive: supported }) })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
});

/**
 * The models that the key may use, in the provider's order. Rejects when they cannot be had.
 *
 * @param signal ends the request.
 */
export async function fetchModels(client: ProviderClient, signal: AbortSignal): Promise<ModelFacts[]> {
  const found: ModelFacts[] = [];
  let seen = 0;
  for await (const model of client.models.list({ limit: 100 }, { signal })) {
    found.push(...factsOf(model));
    if (++seen >= MAX_MODELS) break;
  }
  return found;
}

function factsOf(model: unknown): ModelFacts[] {
  const { data } = answer.safeParse(model);
  if (data === undefined) return [];
  const { image_input: images, thinking } = data.capabilities ?? {};
  const facts = {
    name: data.display_name,
    // A smaller window would have no room for a summary.
    contextWindow:
      data.max_input_tokens === undefined ? undefined : Math.max(data.max_input_tokens, MIN_WINDOW),
    maxOutputTokens: data.max_tokens,
    thinking: thinking === undefined ? undefined : thinking.types.adaptive.supported ? "adaptive" : "none",
    maxImages: images?.supported === false ? 0 : undefined,
  };
  // An invalid fact does not affect the others.
  const sensible = Object.entries(facts).flatMap(([name, value]) =>
    readFacts([{ id: data.id, [name]: value }]),
  );
  return sensible.length === 0 ? [] : [Object.assign({}, ...sensible) as ModelFacts];
}
