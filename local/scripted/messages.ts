/**
 * Owns: the wire types of Anthropic's Messages API as this server reads and writes them. They are written down
 * here, and not imported from the SDK, so that server and client can disagree.
 * Not here: what is refused (validate.ts), how answers are scripted (script.ts).
 */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export type CacheControl = { readonly type: "ephemeral"; readonly ttl?: "5m" | "1h" };
type Cacheable = { readonly cache_control?: CacheControl | null };

type TextParam = Cacheable & {
  readonly type: "text";
  readonly text: string;
  readonly citations?: readonly JsonObject[] | null;
};
export type ImageParam = Cacheable & {
  readonly type: "image";
  readonly source:
    | { readonly type: "base64"; readonly media_type: string; readonly data: string }
    | { readonly type: "url"; readonly url: string };
};
type DocumentParam = Cacheable & { readonly type: "document"; readonly source: JsonObject };
type ThinkingParam = {
  readonly type: "thinking";
  readonly thinking: string;
  readonly signature: string;
};
type RedactedThinkingParam = { readonly type: "redacted_thinking"; readonly data: string };
export type ToolUseParam = Cacheable & {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
};
export type ToolResultParam = Cacheable & {
  readonly type: "tool_result";
  readonly tool_use_id: string;
  readonly content?: string | readonly (TextParam | ImageParam | DocumentParam)[];
  readonly is_error?: boolean;
};
type ServerToolUseParam = Cacheable & {
  readonly type: "server_tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
};
/** The results of tools that the provider runs itself; this server knows them, but never makes any. */
export const SERVER_TOOL_RESULTS = [
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
] as const;
type ServerToolResultParam = Cacheable & {
  readonly type: (typeof SERVER_TOOL_RESULTS)[number];
  readonly tool_use_id: string;
  readonly content: Json;
};

export type BlockParam =
  | TextParam
  | ImageParam
  | DocumentParam
  | ThinkingParam
  | RedactedThinkingParam
  | ToolUseParam
  | ToolResultParam
  | ServerToolUseParam
  | ServerToolResultParam;

export type MessageParam = {
  readonly role: "user" | "assistant";
  readonly content: string | readonly BlockParam[];
};
type ToolParam = Cacheable & {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: JsonObject;
};
type ToolChoice =
  | { readonly type: "auto" | "any"; readonly disable_parallel_tool_use?: boolean }
  | { readonly type: "tool"; readonly name: string; readonly disable_parallel_tool_use?: boolean }
  | { readonly type: "none" };
type ThinkingConfig =
  | { readonly type: "enabled"; readonly budget_tokens: number }
  | { readonly type: "adaptive" | "between_tools" | "disabled" };

/** A request that validate.ts has let through. `max_tokens` is missing in a count_tokens request only. */
export type MessagesRequest = {
  readonly model: string;
  readonly max_tokens?: number;
  readonly messages: readonly MessageParam[];
  readonly system?: string | readonly TextParam[];
  readonly tools?: readonly ToolParam[];
  readonly tool_choice?: ToolChoice;
  readonly thinking?: ThinkingConfig;
  readonly cache_control?: CacheControl | null;
  readonly stream?: boolean;
};

export type StopReason =
  | "end_turn"
  | "max_tokens"
  | "stop_sequence"
  | "tool_use"
  | "pause_turn"
  | "refusal"
  | "model_context_window_exceeded";

/** Token counts. Input in total = input + cache creation + cache read. */
export type Usage = {
  readonly input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly output_tokens: number;
};

/** A block of an answer. */
export type ContentBlock = JsonObject & { readonly type: string };

export type MessageResponse = {
  readonly id: string;
  readonly type: "message";
  readonly role: "assistant";
  readonly model: string;
  readonly content: readonly ContentBlock[];
  readonly stop_reason: StopReason | null;
  readonly stop_sequence: string | null;
  readonly stop_details: JsonObject | null;
  readonly container: null;
  readonly usage: JsonObject;
};

export type Delta =
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "thinking_delta"; readonly thinking: string }
  | { readonly type: "signature_delta"; readonly signature: string }
  | { readonly type: "input_json_delta"; readonly partial_json: string };

export type StreamEvent =
  | { readonly type: "message_start"; readonly message: MessageResponse }
  | { readonly type: "content_block_start"; readonly index: number; readonly content_block: ContentBlock }
  | { readonly type: "content_block_delta"; readonly index: number; readonly delta: Delta }
  | { readonly type: "content_block_stop"; readonly index: number }
  | { readonly type: "message_delta"; readonly delta: JsonObject; readonly usage: JsonObject }
  | { readonly type: "message_stop" }
  | { readonly type: "ping" }
  | (ErrorBody & { readonly type: "error" });

export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "billing_error"
  | "permission_error"
  | "not_found_error"
  | "request_too_large"
  | "rate_limit_error"
  | "timeout_error"
  | "api_error"
  | "overloaded_error";

export type ErrorBody = {
  readonly type: "error";
  readonly error: { readonly type: ErrorType; readonly message: string };
  readonly request_id: string;
};

export function errorBody(type: ErrorType, message: string, requestId: string): ErrorBody {
  return { type: "error", error: { type, message }, request_id: requestId };
}

/** The HTTP status with which the API answers an error of each type. */
export const STATUS_OF: { readonly [K in ErrorType]: number } = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  timeout_error: 504,
  api_error: 500,
  overloaded_error: 529,
};

/** Why a request was refused. */
export type Refusal = { readonly status: number; readonly type: ErrorType; readonly message: string };

export const refusal = (type: ErrorType, message: string): Refusal => ({
  status: STATUS_OF[type],
  type,
  message,
});
