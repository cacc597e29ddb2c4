/**
 * Owns: the language in which answers are scripted. An answer is a list of blocks and cues, read from top to bottom:
 * `say("Let me see. ", hold(), toolCall("ls", {}))`.
 * Not here: which script answers which request (scripts.ts), what goes over the wire (steps.ts).
 */
import type { Cue } from "./cues.ts";
import {
  STATUS_OF,
  type ContentBlock,
  type ErrorType,
  type Json,
  type StopReason,
  type Usage,
} from "./messages.ts";

/** Text that is streamed, and cues between its parts. */
export type Piece = string | Cue;

export type ScriptedBlock =
  | { readonly kind: "text"; readonly pieces: readonly Piece[] }
  | { readonly kind: "thinking"; readonly pieces: readonly Piece[]; readonly signature: string | null }
  | { readonly kind: "redacted_thinking"; readonly thinking: string }
  | {
      readonly kind: "tool_use";
      /** null: the server invents one that was never used before. */
      readonly id: string | null;
      readonly name: string;
      /** The pieces together are the JSON of the input. */
      readonly pieces: readonly Piece[];
    }
  /** Any block as it stands, sent in one piece: `server_tool_use` and the like. */
  | { readonly kind: "raw"; readonly block: ContentBlock };

/** How fast content is streamed. */
export type Pace = {
  /** Characters a delta; Infinity: one delta a piece. */
  readonly characters: number;
  /** Milliseconds between deltas. */
  readonly delayMs: number;
};

export type MessageAnswer = {
  readonly kind: "message";
  readonly content: readonly (ScriptedBlock | Cue)[];
  /** Default: `tool_use` if a tool is called, else `end_turn`. */
  readonly stopReason?: StopReason;
  readonly stopSequence?: string;
  /** Overrides counts of the estimate. */
  readonly usage?: Partial<Usage>;
  readonly pace?: Pace;
  /** Performed before the response's headers are sent. */
  readonly beforeHeaders?: readonly Cue[];
  /** Performed when the stream is open and nothing was sent on it. */
  readonly beforeStart?: readonly Cue[];
  /** Leaves out message_stop only; `endHere` as the last of the content leaves out message_delta, too. */
  readonly withoutMessageStop?: boolean;
};

export type ErrorAnswer = {
  readonly kind: "error";
  readonly status: number;
  readonly type: ErrorType;
  readonly message: string;
  readonly headers: { readonly [name: string]: string };
  readonly beforeHeaders?: readonly Cue[];
};

export type Answer = MessageAnswer | ErrorAnswer;

export type AnswerOptions = Omit<MessageAnswer, "kind" | "content">;

export type Part = string | ScriptedBlock | Cue;

/** An answer of these blocks; a string is a text block. */
export const say = (...parts: readonly Part[]): MessageAnswer => answer(parts);

export function answer(parts: readonly Part[], options: AnswerOptions = {}): MessageAnswer {
  const content = parts.map((part) => (typeof part === "string" ? text(part) : part));
  return { kind: "message", content, ...options };
}

export const text = (...pieces: readonly Piece[]): ScriptedBlock => ({ kind: "text", pieces });

/** Signed by the server, unless a (wrong) signature is given. */
export const thinking = (
  pieces: Piece | readonly Piece[],
  signature: string | null = null,
): ScriptedBlock => ({
  kind: "thinking",
  pieces: Array.isArray(pieces) ? (pieces as readonly Piece[]) : [pieces as Piece],
  signature,
});

export const redactedThinking = (thinking: string): ScriptedBlock => ({
  kind: "redacted_thinking",
  thinking,
});

/** A call; any string can be the id, a malformed or repeated one, too. */
export const toolCall = (name: string, input: Json, id: string | null = null): ScriptedBlock => ({
  kind: "tool_use",
  id,
  name,
  pieces: [JSON.stringify(input)],
});

/** A call whose input is streamed as written: malformed, cut off, or with cues in the middle. */
export const rawToolCall = (
  name: string,
  pieces: readonly Piece[],
  id: string | null = null,
): ScriptedBlock => ({ kind: "tool_use", id, name, pieces });

export const rawBlock = (block: ContentBlock): ScriptedBlock => ({ kind: "raw", block });

/** An error response. `headers`: for example `{ "retry-after": "2" }`. */
export const fail = (
  type: ErrorType,
  options: {
    readonly status?: number;
    readonly message?: string;
    readonly headers?: { readonly [name: string]: string };
    readonly beforeHeaders?: readonly Cue[];
  } = {},
): ErrorAnswer => ({
  kind: "error",
  type,
  status: options.status ?? STATUS_OF[type],
  message: options.message ?? MESSAGES[type],
  headers: options.headers ?? {},
  ...(options.beforeHeaders && { beforeHeaders: options.beforeHeaders }),
});

export const overloaded = (): ErrorAnswer => fail("overloaded_error");

export const rateLimited = (retryAfterSeconds: number): ErrorAnswer =>
  fail("rate_limit_error", { headers: { "retry-after": String(retryAfterSeconds) } });

/** The connection is cut before any byte of a response. */
export const dropConnection = (): MessageAnswer => answer([], { beforeHeaders: [{ kind: "drop" }] });

const MESSAGES: { readonly [K in ErrorType]: string } = {
  invalid_request_error: "Invalid request",
  authentication_error: "invalid x-api-key",
  billing_error: "Your credit balance is too low to access the Anthropic API.",
  permission_error: "Your API key does not have permission to use the specified resource.",
  not_found_error: "Not found",
  request_too_large: "Request exceeds the maximum size",
  rate_limit_error: "This request would exceed your organization's rate limit.",
  timeout_error: "Request timed out",
  api_error: "Internal server error",
  overloaded_error: "Overloaded",
};
