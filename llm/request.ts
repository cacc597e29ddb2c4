/**
 * Owns: the request for the next answer: turns, tools, system prompt, limits and where the provider may cache.
 * Not here: how messages become turns (turns.ts), how the request is sent (ask.ts).
 */
import type { MessageCreateParamsStreaming, MessageParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import type { JsonObject, Message } from "../machine/message.ts";
import { type Model, responseTokensOf } from "./models.ts";
import { buildTurns, type Images } from "./turns.ts";

/** The description of a tool for the model; static for a conversation (REQ-BED-017). */
type ToolDescription = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly inputSchema: JsonObject & { readonly type: "object" };
};

export type RequestInput = {
  /** All messages of the conversation, ascending, with the images that shall be sent (images.ts). */
  readonly messages: readonly Message[];
  readonly model: Model;
  readonly tools: readonly ToolDescription[];
  readonly system: string;
  /** The images in the messages. */
  readonly images: Images;
};

const CACHED = { type: "ephemeral" } as const;
/**
 * Number of ends of requests, from this one back, that get a cache breakpoint. With tools and system these are the
 * permitted 4.
 */
const CACHED_ENDS = 2;

/**
 * The next request of a conversation (REQ-BED-003, 004, 013). The provider caches everything up to the end of this
 * request. It finds what it cached up to the end of the previous request, so each tool round reads its prefix from the
 * cache.
 */
export function buildRequest(input: RequestInput): MessageCreateParamsStreaming {
  const { turns, ends } = buildTurns(input.messages, input.images);
  // In user turns only: an assistant's blocks are sent as received.
  for (const block of new Set(ends.slice(-CACHED_ENDS))) block.cache_control = CACHED;
  const request: MessageCreateParamsStreaming = {
    model: input.model.id,
    max_tokens: responseTokensOf(input.model),
    system: [{ type: "text", text: input.system, cache_control: CACHED }],
    messages: [...turns] satisfies MessageParam[],
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

/** Bytes of all turns: the provider takes 32 MB, with room for tools and system prompt. */
const TURNS_BYTES = 31_000_000;

/** The turns alone are more than the provider takes in one body. */
export const exceedsBody = ({ messages }: MessageCreateParamsStreaming): boolean =>
  Buffer.byteLength(JSON.stringify(messages)) > TURNS_BYTES;
