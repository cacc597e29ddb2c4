/**
 * Owns: the rules about tools: definitions, ids, and that every call is answered by exactly one result in the
 * next message. Where the API was seen to be more lenient than its documentation (results spread over several
 * user messages), the documentation wins.
 */
import type { BlockParam, MessageParam, MessagesRequest } from "./messages.ts";
import { toolCallsOf, contentBlocks } from "./reading.ts";
import { firstOf } from "./shape.ts";

export function usesToolIdsOnce({ messages }: MessagesRequest): string | null {
  const seen = new Set<string>();
  return firstOf(messages.entries(), ([m, message]) =>
    firstOf(contentBlocks(message).entries(), ([b, block]) => {
      if (block.type !== "tool_use" && block.type !== "server_tool_use") return null;
      if (seen.has(block.id)) return `messages.${m}.content.${b}: \`tool_use\` ids must be unique`;
      seen.add(block.id);
      return null;
    }),
  );
}

/** Every call has one result, in the next message and before anything else there; every result has its call. */
export function answersToolUses({ messages }: MessagesRequest): string | null {
  return firstOf(messages.entries(), ([m, message]) => {
    const open = new Set(toolCallsOf(messages[m - 1]).map((call) => call.id));
    const answered = new Set<string>();
    const misplaced = firstOf(contentBlocks(message).entries(), ([b, block]) => {
      if (block.type !== "tool_result") return null;
      const id = block.tool_use_id;
      if (!open.has(id))
        return `messages.${m}.content.${b}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      if (answered.has(id))
        return `messages.${m}.content.${b}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
      answered.add(id);
      return complainAboutError(block, `messages.${m}.content.${b}.tool_result`);
    });
    return misplaced ?? unanswered(messages, m);
  });
}

function unanswered(messages: readonly MessageParam[], m: number): string | null {
  const next = messages[m + 1];
  const leading = new Set<string>();
  for (const block of next === undefined ? [] : contentBlocks(next)) {
    if (block.type !== "tool_result") break;
    leading.add(block.tool_use_id);
  }
  const missing = toolCallsOf(messages[m])
    .map((call) => call.id)
    .filter((id) => !leading.has(id));
  return missing.length === 0
    ? null
    : `messages.${m}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(", ")}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function complainAboutError(block: BlockParam & { type: "tool_result" }, path: string): string | null {
  if (block.is_error !== true) return null;
  const { content } = block;
  if (content === undefined || content.length === 0)
    return `${path}: content cannot be empty if \`is_error\` is true`;
  return typeof content !== "string" && content.some((inner) => inner.type !== "text")
    ? `${path}: all content must be type \`text\` if \`is_error\` is true`
    : null;
}

export function definesTools({ messages, tools = [] }: MessagesRequest): string | null {
  const names = tools.map((tool) => tool.name);
  if (new Set(names).size < names.length) return "tools: Tool names must be unique.";
  const used = messages.some((message) =>
    contentBlocks(message).some(({ type }) => type === "tool_use" || type === "tool_result"),
  );
  return used && tools.length === 0
    ? "Requests which include `tool_use` or `tool_result` blocks must define tools."
    : null;
}

export function choosesDefinedTool({ tool_choice, tools = [], thinking }: MessagesRequest): string | null {
  if (tool_choice === undefined) return null;
  if (tools.length === 0) return "tool_choice: may only be specified while providing `tools`.";
  if (tool_choice.type === "tool" && !tools.some((tool) => tool.name === tool_choice.name))
    return `tool_choice: Tool '${tool_choice.name}' not found in provided tools`;
  return thinking?.type === "enabled" && (tool_choice.type === "tool" || tool_choice.type === "any")
    ? "Thinking may not be enabled when tool_choice forces tool use."
    : null;
}
