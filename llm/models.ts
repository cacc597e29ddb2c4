/**
 * Owns: the models that are offered, and the limits of a model by its id. Built in, so that it works offline;
 * a model that is not listed is accepted all the same (the provider has the last word).
 */

export type Model = {
  readonly id: string;
  readonly name: string;
  /** Tokens of input and output together. */
  readonly contextWindow: number;
  /** Tokens that one response may have, thinking included. */
  readonly maxOutputTokens: number;
  /** `adaptive`: accepts `thinking: { type: "adaptive" }`. */
  readonly thinking: "adaptive" | "none";
  /** The answers come from the built-in scripted model. */
  readonly scripted: boolean;
};

export const DEFAULT_MODEL = "claude-opus-5-5";
export const SCRIPTED_MODEL = "scripted-demo";

const anthropic = (
  id: string,
  name: string,
  contextWindow: number,
  maxOutputTokens: number,
  thinking: Model["thinking"],
): Model => ({ id, name, contextWindow, maxOutputTokens, thinking, scripted: false });

const ANTHROPIC_MODELS: readonly Model[] = [
  anthropic("claude-opus-5-5", "Claude Opus 5.5", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-sonnet-5-5", "Claude Sonnet 5.5", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-haiku-5-5", "Claude Haiku 5.5", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-fable-5-2", "Claude Fable 5.2", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-opus-4-8", "Claude Opus 4.8", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-sonnet-4-6", "Claude Sonnet 4.6", 1_000_000, 128_000, "adaptive"),
  anthropic("claude-opus-4-5", "Claude Opus 4.5", 200_000, 64_000, "none"),
  anthropic("claude-sonnet-4-5", "Claude Sonnet 4.5", 200_000, 64_000, "none"),
  anthropic("claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 64_000, "none"),
];

const SCRIPTED_MODELS: readonly Model[] = [
  {
    id: SCRIPTED_MODEL,
    name: "Scripted demo (not a language model)",
    contextWindow: 200_000,
    maxOutputTokens: 8_192,
    thinking: "none",
    scripted: true,
  },
];

const KNOWN: ReadonlyMap<string, Model> = new Map(
  [...ANTHROPIC_MODELS, ...SCRIPTED_MODELS].map((model) => [model.id, model]),
);

/** The models to choose from; with the scripted provider there is exactly one. */
export function listModels(provider: { readonly scripted: boolean }): readonly Model[] {
  return provider.scripted ? SCRIPTED_MODELS : ANTHROPIC_MODELS;
}

/**
 * The limits of a model. A dated id ("…-20251001") has those of its family; an unknown one gets the smallest known
 * of each (REQ-BED-022) and no optional feature.
 */
export function modelOf(id: string): Model {
  return (
    KNOWN.get(id) ??
    KNOWN.get(id.replace(/-\d{8}$/, "")) ?? {
      id,
      name: id,
      contextWindow: Math.min(...ANTHROPIC_MODELS.map((model) => model.contextWindow)),
      maxOutputTokens: Math.min(...ANTHROPIC_MODELS.map((model) => model.maxOutputTokens)),
      thinking: "none",
      scripted: false,
    }
  );
}

/** Tokens of the model's context window; the smallest known for an unknown model (REQ-BED-022). */
export function windowOf(id: string): number {
  return modelOf(id).contextWindow;
}

/**
 * `max_tokens` of an ordinary request: at most a tenth of the window, which is what the continuation threshold of
 * 90 % keeps free, so that a request just below the threshold can still be answered (REQ-BED-019).
 */
export function responseTokensOf(id: string): number {
  const { contextWindow, maxOutputTokens } = modelOf(id);
  return Math.min(maxOutputTokens, Math.floor(contextWindow / 10));
}
