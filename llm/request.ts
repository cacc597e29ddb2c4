/**
 * Owns: the request for the next answer: turns, tools, system prompt, limits and where the provider may cache.
 * Not here: how messages become turns (turns.ts), how the request is sent (ask.ts).
 */
import type { MessageCreateParamsStreaming, MessageParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import type { JsonObject, Message } from "../machine/message.ts";
import { modelOf, responseTokensOf } from "./models.ts";
import { buildTurns, type Images, type Turn } from "./turns.ts";

/** What the model is told about a tool; static for a conversation (REQ-BED-017). */
export type ToolDescription = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject & { readonly type: "object" };
};

export type RequestInput = {
  /** All messages of the conversation, ascending. */
  readonly messages: readonly Message[];
  readonly model: string;
  readonly tools: readonly ToolDescription[];
  readonly system: string;
  /** The images named by `imageHashes(messages)`. */
  readonly images: Images;
};

const CACHED = { type: "ephemeral" } as const;
/** User turns, from the last, that end with a cache breakpoint; with tools and system that makes the permitted 4. */
const CACHED_TURNS = 2;

/**
 * The next request of a conversation (REQ-BED-003, 004, 013). The provider caches everything up to the last user
 * turn; the turn before it is where the request before this one ended, so each tool round re-reads its prefix.
 */
export function buildRequest(input: RequestInput): MessageCreateParamsStreaming {
  const turns = buildTurns(input.messages, input.images);
  markCached(turns);
  const request: MessageCreateParamsStreaming = {
    model: input.model,
    max_tokens: responseTokensOf(input.model),
    system: [{ type: "text", text: input.system, cache_control: CACHED }],
    messages: turns satisfies MessageParam[],
    stream: true,
  };
  if (input.tools.length > 0) request.tools = input.tools.map(toTool);
  if (modelOf(input.model).thinking === "adaptive") {
    request.thinking = { type: "adaptive", display: "summarized" };
  }
  return request;
}

function toTool(tool: ToolDescription, index: number, all: readonly ToolDescription[]): Tool {
  return {
    name: tool.name,
    description: tool.description,
    input_schema: tool.inputSchema,
    ...(index === all.length - 1 ? { cache_control: CACHED } : {}),
  };
}

/** Breakpoints go into user turns only: an assistant's blocks are sent as received. */
function markCached(turns: readonly Turn[]): void {
  let marks = CACHED_TURNS;
  for (let index = turns.length - 1; index >= 0 && marks > 0; index--) {
    const turn = turns[index];
    if (turn?.role !== "user") continue;
    const last = turn.content.at(-1);
    if (last !== undefined) last.cache_control = CACHED;
    marks--;
  }
}
