/**
 * Owns: tool_use ids on receipt. The provider answers 400 for ever to a conversation with an id that is empty,
 * malformed or used twice. So such an id is replaced, both in the block and in the call; nothing else in a block
 * changes.
 */
import type { CallDefect, ToolCall } from "./conversation.ts";
import type { ProviderBlock } from "./message.ts";

/** The form that the provider accepts. */
const WELL_FORMED = /^[a-zA-Z0-9_-]{1,64}$/;

export type ReceivedCalls = {
  readonly content: readonly ProviderBlock[];
  readonly calls: readonly ToolCall[];
};

export type Defects = readonly { readonly call: number; readonly defect: CallDefect }[];

/**
 * The response's blocks with ids that are unique in the conversation, and its calls in order.
 *
 * @param used ids of earlier messages.
 * @param defects by position among the calls.
 * @param newId gives an unused id.
 */
export function receiveCalls(
  content: readonly ProviderBlock[],
  used: readonly string[],
  defects: Defects,
  newId: () => string,
): ReceivedCalls {
  const taken = new Set(used);
  const calls: ToolCall[] = [];
  const received = content.map((block) => {
    if (block.type !== "tool_use") return block;
    const sent = block["id"];
    const keep = typeof sent === "string" && WELL_FORMED.test(sent) && !taken.has(sent);
    const id = keep ? sent : `toolu_${newId()}`;
    taken.add(id);
    const name = block["name"];
    const defect = defects.find((found) => found.call === calls.length)?.defect;
    calls.push({
      id,
      name: typeof name === "string" ? name : "",
      input: block["input"] ?? {},
      ...(defect === undefined ? {} : { defect }),
    });
    return keep ? block : { ...block, id };
  });
  return { content: received, calls };
}
