/**
 * Owns: the models that are offered, and the limits of a model by its id, from what several sources know of them
 * (REQ-BED-022). The built-in facts are enough to work offline; the provider's own list and the person's file come on
 * top. A model that no source knows is accepted, too: the provider decides.
 * Not here: asking the provider (provider-models.ts), reading the file (models-file.ts), what a request costs (price.ts).
 */
import type { Price } from "./price.ts";

export type Model = {
  readonly id: string;
  readonly name: string;
  /** Tokens of input and output together. */
  readonly contextWindow: number;
  /** Tokens that one response may have, thinking included. */
  readonly maxOutputTokens: number;
  /** `adaptive`: accepts `thinking: { type: "adaptive" }`. */
  readonly thinking: "adaptive" | "none";
  /** Images that one request may hold; 0: the model sees none. */
  readonly maxImages: number;
  /** null: not known. */
  readonly price: Price | null;
  /** The answers come from the built-in scripted model. */
  readonly scripted: boolean;
};

/** Facts on a model from one source. */
export type ModelFacts = { readonly id: string } & {
  readonly [K in Exclude<keyof Model, "id" | "scripted">]?: NonNullable<Model[K]> | undefined;
};

export const DEFAULT_MODEL = "claude-opus-5-5";
export const SCRIPTED_MODEL = "scripted-demo";

/** A smaller window has no room for a summary. */
export const MIN_WINDOW = 4_000;

const LARGE = { contextWindow: 1_000_000, maxOutputTokens: 128_000, thinking: "adaptive" } as const;
const SMALL = { contextWindow: 200_000, maxOutputTokens: 64_000, thinking: "none" } as const;

/** The provider's list prices of November 2026, with cache entries that live for five minutes. */
const OPUS_5_5: Price = { input: 4, output: 20, cacheRead: 0.2, cacheCreation: 5 };
const SONNET_5_5: Price = { input: 2, output: 10, cacheRead: 0.1, cacheCreation: 2.5 };
const HAIKU_5_5: Price = {
  ...{ input: 0.1, output: 0.5, cacheRead: 0.01, cacheCreation: 0.125 },
  longPrompt: { above: 100_000, input: 0.5, output: 2.5, cacheRead: 0.05, cacheCreation: 0.625 },
};
const FABLE_5_2: Price = { input: 8, output: 40, cacheRead: 0.2, cacheCreation: 10 };
const OPUS_4: Price = { input: 5, output: 25, cacheRead: 0.5, cacheCreation: 6.25 };
const SONNET_4: Price = { input: 3, output: 15, cacheRead: 0.3, cacheCreation: 3.75 };
const HAIKU_4: Price = { input: 1, output: 5, cacheRead: 0.1, cacheCreation: 1.25 };
const FREE: Price = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };

const BUILT_IN: readonly ModelFacts[] = [
  { id: DEFAULT_MODEL, name: "Claude Opus 5.5", ...LARGE, price: OPUS_5_5 },
  { id: "claude-sonnet-5-5", name: "Claude Sonnet 5.5", ...LARGE, price: SONNET_5_5 },
  { id: "claude-haiku-5-5", name: "Claude Haiku 5.5", ...LARGE, price: HAIKU_5_5 },
  { id: "claude-fable-5-2", name: "Claude Fable 5.2", ...LARGE, price: FABLE_5_2 },
  { id: "claude-opus-4-8", name: "Claude Opus 4.8", ...LARGE, price: OPUS_4 },
  { id: "claude-sonnet-4-6", name: "Claude Sonnet 4.6", ...LARGE, price: SONNET_4 },
  { id: "claude-opus-4-5", name: "Claude Opus 4.5", ...SMALL, price: OPUS_4 },
  { id: "claude-sonnet-4-5", name: "Claude Sonnet 4.5", ...SMALL, price: SONNET_4 },
  { id: "claude-haiku-4-5", name: "Claude Haiku 4.5", ...SMALL, price: HAIKU_4 },
];

/** Only their prices are known here; whether they can be had is for the provider's list. */
const PRICED: readonly ModelFacts[] = [
  { id: "claude-fable-5-1", price: { input: 10, output: 50, cacheRead: 0.25, cacheCreation: 12.5 } },
  { id: "claude-fable-5", price: { input: 10, output: 50, cacheRead: 1, cacheCreation: 12.5 } },
  { id: "claude-opus-5", price: OPUS_4 },
  { id: "claude-sonnet-5", price: { ...SONNET_5_5, cacheRead: 0.2 } },
  { id: "claude-opus-4-7", price: OPUS_4 },
  { id: "claude-opus-4-6", price: OPUS_4 },
];

const DEMO: Model = {
  id: SCRIPTED_MODEL,
  name: "Scripted demo (not a language model)",
  contextWindow: 200_000,
  maxOutputTokens: 8_192,
  thinking: "none",
  maxImages: 100,
  price: FREE,
  scripted: true,
};

/** The provider's limit depends on the window (its page on vision). */
const imagesOf = (contextWindow: number): number => (contextWindow <= 200_000 ? 100 : 600);

export type Sources = {
  /** The provider's list; null while it is not known. */
  readonly provided?: readonly ModelFacts[] | null;
  /** The person's file; its facts override those of the other sources. */
  readonly file?: readonly ModelFacts[];
  /** The answers come from the built-in scripted model: there is no other. */
  readonly scripted?: boolean;
};

export class Models {
  /** The models to choose from. */
  readonly list: readonly Model[];
  readonly #facts: ReadonlyMap<string, ModelFacts>;
  readonly #file: ReadonlyMap<string, ModelFacts>;
  readonly #smallest: Pick<Model, "contextWindow" | "maxOutputTokens">;
  readonly #scripted: boolean;

  constructor({ provided = null, file = [], scripted = false }: Sources = {}) {
    this.#scripted = scripted;
    this.#facts = merged([PRICED, BUILT_IN, provided ?? []]);
    this.#file = merged([file]);
    const known = [...this.#facts.values(), ...file];
    this.#smallest = {
      contextWindow: least(known.map((facts) => facts.contextWindow)),
      maxOutputTokens: least(known.map((facts) => facts.maxOutputTokens)),
    };
    // A model that the provider does not list cannot be had from it.
    const offered = new Set([...(provided ?? BUILT_IN), ...file].map(({ id }) => id));
    this.list = scripted ? [DEMO] : [...offered].map((id) => this.of(id));
  }

  /**
   * A model and its limits. A dated id ("…-20251001") has the limits of its family. For a limit that no source knows,
   * the smallest known value holds (REQ-BED-022); an optional feature that no source knows is missing.
   */
  of(id: string): Model {
    if (this.#scripted && id === SCRIPTED_MODEL) return DEMO;
    const family = id.replace(/-\d{8}$/, "");
    const sources = [
      this.#facts.get(family),
      this.#facts.get(id),
      this.#file.get(family),
      this.#file.get(id),
    ];
    const facts = Object.assign({}, ...sources) as Partial<ModelFacts>;
    const contextWindow = facts.contextWindow ?? this.#smallest.contextWindow;
    const maxOutputTokens = facts.maxOutputTokens ?? this.#smallest.maxOutputTokens;
    return {
      id,
      name: facts.name ?? id,
      contextWindow,
      maxOutputTokens: Math.min(maxOutputTokens, contextWindow),
      thinking: facts.thinking ?? "none",
      maxImages: facts.maxImages ?? imagesOf(contextWindow),
      price: facts.price ?? null,
      scripted: false,
    };
  }
}

/** Merges the sources by id. For each fact, the last source that has it wins. */
function merged(sources: readonly (readonly ModelFacts[])[]): Map<string, ModelFacts> {
  const byId = new Map<string, ModelFacts>();
  for (const facts of sources.flat()) {
    const known = Object.entries(facts).filter(([, value]) => value !== undefined);
    byId.set(facts.id, { ...byId.get(facts.id), ...(Object.fromEntries(known) as ModelFacts) });
  }
  return byId;
}

const least = (values: readonly (number | undefined)[]): number =>
  Math.min(...values.filter((value) => value !== undefined));

/**
 * `max_tokens` of an ordinary request: at most a tenth of the window. The continuation threshold of 90 % keeps that
 * tenth free, so that a request just below the threshold can still be answered (REQ-BED-019).
 */
export function responseTokensOf({ contextWindow, maxOutputTokens }: Model): number {
  return Math.min(maxOutputTokens, Math.floor(contextWindow / 10));
}
