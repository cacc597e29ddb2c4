/**
 * Owns: the request for the next answer: turns, tools, system prompt, limits and where the provider may cache.
 * Not here: how messages become turns (turns.ts), how the request is sent (ask.ts).
 */
import type {
  ContentBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  Tool,
} from "@anthropic-ai/sdk/resources/messages";
import type { JsonObject, Message } from "../machine/message.ts";
import { type Model, responseTokensOf } from "./models.ts";
import { buildTurns, type Images, type Turn } from "./turns.ts";

/** What the model is told about a tool; static for a conversation (REQ-BED-017). */
export type ToolDescription = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject & { readonly type: "object" };
};

export type RequestInput = {
  /** All messages of the conversation, ascending, with the pictures that shall be sent (pictures.ts). */
  readonly messages: readonly Message[];
  readonly model: Model;
  readonly tools: readonly ToolDescription[];
  readonly system: string;
  /** Those in the messages. */
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
    model: input.model.id,
    max_tokens: responseTokensOf(input.model),
    system: [{ type: "text", text: input.system, cache_control: CACHED }],
    messages: turns satisfies MessageParam[],
    stream: true,
  };
  if (input.tools.length > 0) request.tools = input.tools.map(toTool);
  if (input.model.thinking === "adaptive") {
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

/** Of what the provider takes (32 MB), with room for what is not counted here: names, inputs of calls, escapes. */
const BODY_CHARACTERS = 28_000_000;

/** The texts and pictures alone are more than the provider takes in one body. */
export function exceedsBody({ messages }: MessageCreateParamsStreaming): boolean {
  let characters = 0;
  for (const { content } of messages) {
    if (typeof content === "string") characters += content.length;
    else for (const block of content) characters += charactersOf(block);
  }
  return characters > BODY_CHARACTERS;
}

function charactersOf(block: ContentBlockParam): number {
  if (block.type === "text") return block.text.length;
  if (block.type === "image") return block.source.type === "base64" ? block.source.data.length : 0;
  if (block.type !== "tool_result" || block.content === undefined) return 0;
  if (typeof block.content === "string") return block.content.length;
  return block.content.reduce((sum, inner) => sum + charactersOf(inner as ContentBlockParam), 0);
}
