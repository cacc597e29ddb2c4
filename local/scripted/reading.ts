/** Owns: reading a request for rules, scripts and tests: its texts, tools, calls and results. Pure. */
import type { BlockParam, MessageParam, MessagesRequest, ToolResultParam, ToolUseParam } from "./messages.ts";

/** The blocks of a message; a string is one text block, an empty one none. */
export function contentBlocks(message: MessageParam | undefined): readonly BlockParam[] {
  const content = message?.content ?? [];
  if (typeof content !== "string") return content;
  return content === "" ? [] : [{ type: "text", text: content }];
}

/** The texts of one message, tool results left out. */
export const textsOf = (message: MessageParam | undefined): string[] =>
  contentBlocks(message).flatMap((block) => (block.type === "text" ? [block.text] : []));

/** The texts of all of the user's messages, in order. */
export const userTexts = (request: MessagesRequest): string[] =>
  request.messages.flatMap((message) => (message.role === "user" ? textsOf(message) : []));

export const toolNames = (request: MessagesRequest): string[] =>
  (request.tools ?? []).map((tool) => tool.name);

export const toolCallsOf = (message: MessageParam | undefined): ToolUseParam[] =>
  contentBlocks(message).filter((block) => block.type === "tool_use");

export const toolResultsOf = (message: MessageParam | undefined): ToolResultParam[] =>
  contentBlocks(message).filter((block) => block.type === "tool_result");

/** The text of a tool result; images are left out. */
export function resultText({ content = "" }: ToolResultParam): string {
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
