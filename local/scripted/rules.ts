/**
 * Owns: the rules between the fields and messages of a request that is well-formed by itself (request-shape.ts).
 * Each rule is a function that answers the API's sentence for the first violation, or null.
 */
import type { BlockParam, MessagesRequest } from "./messages.ts";
import { SERVER_TOOL_RESULTS } from "./messages.ts";
import { complainAboutImages } from "./images.ts";
import { contentBlocks } from "./reading.ts";
import { firstOf } from "./shape.ts";
import { isRedacted, isSigned } from "./signature.ts";
import { answersToolUses, choosesDefinedTool, definesTools, usesToolIdsOnce } from "./tool-rules.ts";

const MAX_CACHE_BREAKPOINTS = 4;

type Rule = (request: MessagesRequest) => string | null;

export const RULES: readonly Rule[] = [
  startsWithUser,
  hasContent,
  hasText,
  endsWithUser,
  keepsBlocksInTheirRole,
  citesAsAssistantOnly,
  usesToolIdsOnce,
  answersToolUses,
  definesTools,
  choosesDefinedTool,
  affordsThinking,
  keepsThinking,
  setsFewBreakpoints,
  complainAboutImages,
];

function startsWithUser({ messages }: MessagesRequest): string | null {
  if (messages.length === 0) return "messages: at least one message is required";
  return messages[0]?.role === "user" ? null : 'messages: first message must use the "user" role';
}

function hasContent({ messages }: MessagesRequest): string | null {
  return firstOf(messages.entries(), ([m, message]) => {
    if (message.content.length > 0) return null;
    if (message.role === "user") return `messages.${m}: user messages must have non-empty content`;
    return m === messages.length - 1
      ? null
      : `messages.${m}: all messages must have non-empty content except for the optional final assistant message`;
  });
}

function hasText(request: MessagesRequest): string | null {
  const inSystem = typeof request.system === "string" ? [] : (request.system ?? []);
  return (
    firstOf(inSystem, ({ text }) => emptyText("system", text)) ??
    firstOf(request.messages, ({ content }) => {
      if (typeof content === "string") return content === "" ? null : emptyText("messages", content);
      return firstOf(texts(content), (text) => emptyText("messages", text));
    })
  );
}

function emptyText(where: string, text: string): string | null {
  if (text === "") return `${where}: text content blocks must be non-empty`;
  return text.trim() === "" ? `${where}: text content blocks must contain non-whitespace text` : null;
}

function* texts(blocks: readonly BlockParam[]): Generator<string> {
  for (const block of blocks) {
    if (block.type === "text") yield block.text;
    if (block.type === "tool_result" && typeof block.content === "object") yield* texts(block.content);
  }
}

/** A turn that the provider paused in the middle of its own tools goes on from an assistant message. */
function endsWithUser({ messages }: MessagesRequest): string | null {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return null;
  const paused = contentBlocks(last).at(-1);
  const types: readonly string[] = ["server_tool_use", ...SERVER_TOOL_RESULTS];
  return paused !== undefined && types.includes(paused.type)
    ? null
    : "This model does not support assistant message prefill. The conversation must end with a user message.";
}

const OF_THE_ASSISTANT: readonly string[] = [
  "tool_use",
  "thinking",
  "redacted_thinking",
  "server_tool_use",
  ...SERVER_TOOL_RESULTS,
];

function keepsBlocksInTheirRole({ messages }: MessagesRequest): string | null {
  return firstOf(messages.entries(), ([m, message]) =>
    firstOf(contentBlocks(message), ({ type }) => {
      if (message.role === "user" && OF_THE_ASSISTANT.includes(type))
        return `messages.${m}: \`${type}\` blocks can only be in \`assistant\` messages`;
      if (message.role === "assistant" && ["tool_result", "image", "document"].includes(type))
        return `messages.${m}: \`${type}\` blocks can only be in \`user\` messages`;
      return null;
    }),
  );
}

function citesAsAssistantOnly({ messages }: MessagesRequest): string | null {
  return firstOf(messages.entries(), ([m, message]) =>
    firstOf(contentBlocks(message).entries(), ([b, block]) =>
      message.role === "user" && block.type === "text" && (block.citations ?? []).length > 0
        ? `messages.${m}.content.${b}.text.citations: citations are not permitted in \`user\` messages`
        : null,
    ),
  );
}

function affordsThinking({ thinking, max_tokens }: MessagesRequest): string | null {
  return thinking?.type === "enabled" && max_tokens !== undefined && max_tokens <= thinking.budget_tokens
    ? "`max_tokens` must be greater than `thinking.budget_tokens`."
    : null;
}

function keepsThinking({ messages }: MessagesRequest): string | null {
  return firstOf(messages.entries(), ([m, message]) =>
    firstOf(contentBlocks(message).entries(), ([b, block]) => {
      const path = `messages.${m}.content.${b}`;
      if (block.type === "thinking" && !isSigned(block.thinking, block.signature))
        return `${path}: Invalid \`signature\` in \`thinking\` block`;
      if (block.type === "redacted_thinking" && !isRedacted(block.data))
        return `${path}: Invalid \`data\` in \`redacted_thinking\` block`;
      return null;
    }),
  );
}

function setsFewBreakpoints(request: MessagesRequest): string | null {
  const breakpoints = cacheables(request).filter((part) => (part.cache_control ?? null) !== null);
  if (breakpoints.length > MAX_CACHE_BREAKPOINTS)
    return `A maximum of ${MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found ${breakpoints.length}.`;
  const times = breakpoints.map((part) => part.cache_control?.ttl ?? "5m");
  return times.lastIndexOf("1h") > times.indexOf("5m") && times.includes("5m")
    ? "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    : null;
}

/** Everything that can carry a breakpoint, in the order in which the cache sees it. */
function cacheables(request: MessagesRequest): { readonly cache_control?: { ttl?: string } | null }[] {
  const blocks = request.messages.flatMap((message) => contentBlocks(message));
  const parts = blocks.flatMap((block) =>
    block.type === "tool_result" && typeof block.content === "object" ? [...block.content, block] : [block],
  );
  const system = typeof request.system === "string" ? [] : (request.system ?? []);
  const automatic = request.cache_control ?? null;
  return [
    ...(request.tools ?? []),
    ...system,
    ...parts.map((part) => ("cache_control" in part ? part : {})),
    ...(automatic === null ? [] : [{ cache_control: automatic }]),
  ];
}
