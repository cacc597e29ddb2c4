/**
 * Owns: the verdict on a request: null, or the refusal with which the API would answer. Pure.
 * The order is the API's: headers, shape, model, rules, size of the prompt.
 */
import type { IncomingHttpHeaders } from "node:http";
import { complainAboutNumber } from "./images.ts";
import { refusal, type Json, type MessagesRequest, type Refusal } from "./messages.ts";
import { MODELS, type Model } from "./models.ts";
import { countTokensShape, messagesShape } from "./request-shape.ts";
import { RULES } from "./rules.ts";
import { firstOf } from "./shape.ts";
import { countTokens } from "./usage.ts";

/** An older client is accepted, but held to the rules of the newest version, which are the strictest. */
const API_VERSIONS: readonly string[] = ["2026-10-21", "2023-06-01"];

/** 401 without credentials (or with others than `apiKey`), 400 without a known `anthropic-version`. */
export function validateHeaders(headers: IncomingHttpHeaders, apiKey?: string): Refusal | null {
  const given = headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");
  if (given === undefined || given === "")
    return refusal("authentication_error", "x-api-key header is required");
  if (apiKey !== undefined && given !== apiKey) return refusal("authentication_error", "invalid x-api-key");
  const version = headers["anthropic-version"];
  if (version === undefined) return refusal("invalid_request_error", "anthropic-version: header is required");
  return typeof version === "string" && API_VERSIONS.includes(version)
    ? null
    : refusal("invalid_request_error", `anthropic-version: "${String(version)}" is not a valid version`);
}

export type Endpoint = "messages" | "count_tokens";

/** Null if the API would accept the body; it is a `MessagesRequest` then. */
export function validateRequest(
  body: Json,
  endpoint: Endpoint = "messages",
  models: readonly Model[] = MODELS,
): Refusal | null {
  const shape = endpoint === "messages" ? messagesShape : countTokensShape;
  const malformed = shape(body, "");
  if (malformed !== null) return refusal("invalid_request_error", malformed.replace(/^: /, ""));
  const request = body as unknown as MessagesRequest;
  const model = models.find(({ id }) => id === request.model);
  if (model === undefined) return refusal("not_found_error", `model: ${request.model}`);
  const complaint = firstOf(RULES, (rule) => rule(request)) ?? complainAboutModel(request, model, endpoint);
  return complaint === null ? null : refusal("invalid_request_error", complaint);
}

function complainAboutModel(request: MessagesRequest, model: Model, endpoint: Endpoint): string | null {
  if (endpoint === "count_tokens") return null;
  const { max_tokens = 0, thinking } = request;
  if (thinking?.type === "enabled" && model.thinking === "adaptive")
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
  if (thinking?.type === "adaptive" && model.thinking === "manual")
    return "adaptive thinking is not supported on this model";
  if (max_tokens > model.maxOutput)
    return `max_tokens: ${max_tokens} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${model.id}`;
  const tooMany = complainAboutNumber(request, model.contextWindow);
  if (tooMany !== null) return tooMany;
  const tokens = countTokens(request);
  return tokens > model.contextWindow
    ? `prompt is too long: ${tokens} tokens > ${model.contextWindow} maximum`
    : null;
}
