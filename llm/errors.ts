/**
 * Owns: what an error of the provider means: its kind, whether asking again can help (REQ-BED-006), and a sentence
 * for the person that says what to do. No keys, no markup, no stacks.
 */
import { APIConnectionError, APIError, AnthropicError } from "@anthropic-ai/sdk";
import { DEFAULT_LIMITS } from "../machine/context.ts";
import type { ErrorKind } from "../machine/message.ts";
import { bounded } from "../machine/size.ts";
import { BrokenStream } from "./accumulate.ts";
import { TooMuch } from "./limits.ts";

export type Failure = {
  readonly errorKind: ErrorKind;
  readonly message: string;
  readonly retryable: boolean;
  /** The provider's Retry-After in milliseconds. */
  readonly retryAfterMs: number | null;
};

const CONTEXT_EXCEEDED =
  /prompt is too long|context (window|limit|length)|maximum context|too many (input )?tokens/i;
const OUT_OF_CREDIT = /quota|billing|credit balance|(spend|usage) limit/i;
/** Such a limit passes by itself, whatever else its message mentions. */
const PER_MINUTE = /per[- ]minute/i;

/**
 * Classifies the error that ended a request to the provider.
 *
 * @param apiKey of the request: a provider, or a proxy before it, may repeat it in its error
 */
export function classify(error: unknown, apiKey: string | null = null): Failure {
  const tooMuch = causesOf(error).find((cause) => cause instanceof TooMuch);
  if (tooMuch !== undefined) return failure("unknown", tooMuch.message, false);
  if (error instanceof APIConnectionError) return unreachable(error);
  if (error instanceof APIError) return classifyAnswer(error as APIError, apiKey);
  if (error instanceof BrokenStream || error instanceof SyntaxError) {
    return failure("network", "The model's provider sent an answer that could not be read.", true);
  }
  if (error instanceof AnthropicError) {
    return failure(
      "auth",
      "There is no usable API key. Set ANTHROPIC_API_KEY and send a message again.",
      false,
    );
  }
  // undici reports so that a connection broke while its body was read.
  if (error instanceof TypeError && (error.message === "terminated" || error.cause !== undefined)) {
    return unreachable(error);
  }
  return failure(
    "unknown",
    "The request to the model failed unexpectedly. Send a message to try again.",
    false,
  );
}

function classifyAnswer(error: APIError, apiKey: string | null): Failure {
  const retryAfterMs = retryAfter(error.headers?.get("retry-after") ?? null);
  const failed = byTypeOrStatus(error, detailOf(error, apiKey), tryAgain(retryAfterMs));
  const forbidden = error.headers?.get("x-should-retry") === "false";
  return { ...failed, retryable: failed.retryable && !forbidden, retryAfterMs };
}

/**
 * An error in mid-stream has a type and no status; a proxy's error has a status and no type.
 *
 * @param again the end of a sentence about what passes by itself
 */
function byTypeOrStatus(error: APIError, detail: string, again: string): Failure {
  const { status } = error;
  const type: string | null = error.type;
  if (type === "overloaded_error" || status === 529) {
    return failure("overloaded", `The model's provider is overloaded. ${again}`, true);
  }
  if (type === "authentication_error" || status === 401) {
    return failure(
      "auth",
      "The API key was refused. Check ANTHROPIC_API_KEY and send a message again.",
      false,
    );
  }
  if (type === "billing_error" || status === 402) return outOfCredit();
  if (type === "permission_error" || status === 403) {
    return failure(
      "auth",
      `The API key may not do this${because(detail)} Check the key's permissions.`,
      false,
    );
  }
  if (type === "rate_limit_error" || status === 429) {
    if (OUT_OF_CREDIT.test(detail) && !PER_MINUTE.test(detail)) return outOfCredit();
    return failure("rate_limit", `The provider's rate limit was reached. ${again}`, true);
  }
  if (status === 408 || status === 502 || status === 503 || status === 504 || type === "timeout_error") {
    return failure("network", `The model's provider could not be reached${code(status)}. ${again}`, true);
  }
  if (status === 409 || (status ?? 0) >= 500 || type === "api_error") {
    return failure("unknown", `The model's provider failed internally${code(status)}. ${again}`, true);
  }
  // The history makes the request too large, so a retry would be too large again.
  if (CONTEXT_EXCEEDED.test(detail) || status === 413 || type === "request_too_large") {
    return failure(
      "context_exhausted",
      "The conversation no longer fits the model's context window. Continue in a new conversation.",
      false,
    );
  }
  if (OUT_OF_CREDIT.test(detail)) return outOfCredit();
  if (status === 404 || type === "not_found_error") {
    return failure(
      "invalid_request",
      `The provider does not know what was asked for${because(detail)}`,
      false,
    );
  }
  if (status !== undefined || type === "invalid_request_error") {
    return failure("invalid_request", `The provider refused the request${because(detail)}`, false);
  }
  return failure("unknown", `The provider reported an error${because(detail)} ${again}`, true);
}

const outOfCredit = (): Failure =>
  failure(
    "rate_limit",
    "The provider account's credit or usage limit is used up. Check its billing, then send a message again.",
    false,
  );

function unreachable(error: Error): Failure {
  const reason = connectionCode(error);
  return failure(
    "network",
    `The model's provider could not be reached${reason === null ? "" : ` (${reason})`}. Check the network connection.`,
    true,
  );
}

/** Bytes of the message that is shown: a provider may quote the whole request. */
const MESSAGE_BYTES = 4 * 1024;

function failure(errorKind: ErrorKind, message: string, retryable: boolean): Failure {
  return { errorKind, message: bounded(message, MESSAGE_BYTES), retryable, retryAfterMs: null };
}

/** The system's code ("ECONNREFUSED") from the chain of causes. */
function connectionCode(error: unknown): string | null {
  const codes = causesOf(error).flatMap((cause) => ("code" in cause ? [String(cause.code)] : []));
  return codes.find((code) => /^[A-Z_]+$/.test(code)) ?? null;
}

/** The error, its cause, the cause's cause. */
function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let cause = error; cause instanceof Error && chain.length < 5; cause = cause.cause) chain.push(cause);
  return chain;
}

/** The provider's own words, if they are fit to be shown. */
function detailOf(error: APIError, apiKey: string | null): string {
  const words = error.apiMessage;
  if (typeof words !== "string" || /<\/?[a-z!]/i.test(words)) return "";
  const line = withoutKeys(words, apiKey).replace(/\s+/g, " ").trim();
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

/** The text without this key, and without any other that can be told by its beginning. */
export function withoutKeys(text: string, apiKey: string | null): string {
  const forms = apiKey === null || apiKey === "" ? [] : [JSON.stringify(apiKey).slice(1, -1), apiKey];
  return forms.reduce((rest, form) => rest.replaceAll(form, "…"), text).replace(/sk-[\w-]+/g, "sk-…");
}

const because = (detail: string): string =>
  detail === "" ? "." : `: ${/[.!?…]$/.test(detail) ? detail : `${detail}.`}`;
const code = (status: number | undefined): string => (status === undefined ? "" : ` (${status})`);

/** The latest moment that a Date can hold, in milliseconds. */
const LATEST_MS = 8.64e15;
const MINUTE_MS = 60_000;

/** Names the moment if the provider asks for more patience than the machine has: then nothing asks again by itself. */
function tryAgain(retryAfterMs: number | null): string {
  if (retryAfterMs === null || retryAfterMs <= DEFAULT_LIMITS.longestRetryMs) return "Try again in a moment.";
  const at = Math.ceil((Date.now() + retryAfterMs) / MINUTE_MS) * MINUTE_MS;
  const [day = "", time = ""] = new Date(Math.min(at, LATEST_MS)).toISOString().split("T");
  return `Try again after ${day} ${time.slice(0, 5)} UTC.`;
}

/** Seconds or an HTTP date, as milliseconds from now. */
function retryAfter(header: string | null): number | null {
  if (header === null || header.trim() === "") return null;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : null;
}
