/**
 * Owns: the models that the server pretends to have. A request that names another one is refused with 404.
 * Not here: what the product knows of models.
 */
import type { JsonObject } from "./messages.ts";

export type Model = {
  readonly id: string;
  readonly name: string;
  /** Tokens. */
  readonly contextWindow: number;
  /** Tokens; the largest `max_tokens`. */
  readonly maxOutput: number;
  /** How thinking is switched on: with a budget, adaptively, or in either way. */
  readonly thinking: "manual" | "adaptive" | "both";
};

/** The model of `npm start` without a key. */
const DEMO_MODEL = "scripted-demo";

const large = { contextWindow: 1_000_000, maxOutput: 128_000, thinking: "adaptive" } as const;
const small = { contextWindow: 200_000, maxOutput: 64_000, thinking: "manual" } as const;

export const MODELS: readonly Model[] = [
  { id: DEMO_MODEL, name: "Scripted demo model", ...small, thinking: "both" },
  { id: "claude-fable-5-2", name: "Claude Fable 5.2", ...large },
  { id: "claude-fable-5-1", name: "Claude Fable 5.1", ...large },
  { id: "claude-fable-5", name: "Claude Fable 5", ...large },
  { id: "claude-mythos-5-2", name: "Claude Mythos 5.2", ...large },
  { id: "claude-mythos-5-1", name: "Claude Mythos 5.1", ...large },
  { id: "claude-mythos-5", name: "Claude Mythos 5", ...large },
  { id: "claude-mythos-preview", name: "Claude Mythos Preview", ...large },
  { id: "claude-opus-5-5", name: "Claude Opus 5.5", ...large },
  { id: "claude-opus-5", name: "Claude Opus 5", ...large },
  { id: "claude-opus-4-8", name: "Claude Opus 4.8", ...large },
  { id: "claude-opus-4-7", name: "Claude Opus 4.7", ...large },
  { id: "claude-opus-4-6", name: "Claude Opus 4.6", ...large, thinking: "both" },
  { id: "claude-opus-4-5", name: "Claude Opus 4.5", ...small },
  { id: "claude-opus-4-5-20251101", name: "Claude Opus 4.5", ...small },
  { id: "claude-sonnet-5-5", name: "Claude Sonnet 5.5", ...large },
  { id: "claude-sonnet-5", name: "Claude Sonnet 5", ...large },
  { id: "claude-sonnet-4-6", name: "Claude Sonnet 4.6", ...large, thinking: "both" },
  { id: "claude-sonnet-4-5", name: "Claude Sonnet 4.5", ...small },
  { id: "claude-sonnet-4-5-20250929", name: "Claude Sonnet 4.5", ...small },
  { id: "claude-haiku-5-5", name: "Claude Haiku 5.5", ...large },
  { id: "claude-haiku-4-5", name: "Claude Haiku 4.5", ...small },
  { id: "claude-haiku-4-5-20251001", name: "Claude Haiku 4.5", ...small },
];

/** One entry of `GET /v1/models`. */
export function describeModel(model: Model): JsonObject {
  return {
    type: "model",
    id: model.id,
    display_name: model.name,
    created_at: "1970-01-01T00:00:00Z",
    max_input_tokens: model.contextWindow,
    max_tokens: model.maxOutput,
    capabilities: capabilitiesOf(model),
    lifecycle: "active",
    line: null,
    deprecated_at: null,
    retires_at: null,
  };
}

const support = (supported: boolean): JsonObject => ({ supported });

/** The part of the real list that has a meaning here. */
function capabilitiesOf({ thinking }: Model): JsonObject {
  return {
    batch: support(true),
    citations: support(true),
    code_execution: support(false),
    image_input: support(true),
    pdf_input: support(true),
    structured_outputs: support(true),
    thinking: {
      supported: true,
      types: {
        adaptive: support(thinking !== "manual"),
        between_tools: support(false),
        disabled: support(true),
        enabled: support(thinking !== "adaptive"),
      },
    },
  };
}

/** The body of `GET /v1/models`; everything is on the first page. */
export function listModels(models: readonly Model[]): JsonObject {
  return {
    data: models.map(describeModel),
    has_more: false,
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
  };
}
