/**
 * Owns: the provider's rules for a request, written down a second time and independently of the builder and of the
 * scripted server. Throws on the first broken rule.
 */
import assert from "node:assert/strict";
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";

type Part = { readonly type: string; readonly [key: string]: unknown };

export function assertSendable(request: MessageCreateParamsStreaming): void {
  const turns = request.messages.map(({ role, content }) => {
    assert.ok(Array.isArray(content), "content is a list of blocks");
    return { role, blocks: content as unknown as readonly Part[] };
  });
  assert.equal(turns[0]?.role, "user", "the first turn is the user's");
  for (const [index, { role, blocks }] of turns.entries()) {
    if (index > 0) assert.notEqual(role, turns[index - 1]?.role, "turns alternate");
    assert.ok(blocks.length > 0, "no turn is empty");
    const open = (turns[index - 1]?.blocks ?? []).filter(isCall).map((block) => block["id"]);
    const results = blocks.filter((block) => block.type === "tool_result");
    assert.deepEqual(
      results.map((block) => block["tool_use_id"]),
      open,
      "every call is answered once, in order, in the next turn",
    );
    assert.deepEqual(blocks.slice(0, results.length), results, "results come first");
    if (role === "assistant") assert.ok(!isThinking(blocks.at(-1)), "no assistant turn ends with thinking");
    for (const block of blocks) assertBlock(block, role);
  }
  const last = turns.at(-1);
  if (last?.role === "assistant") {
    assert.ok(!last.blocks.some(isCall), "a call is never left open");
    assert.notEqual(last.blocks.at(-1)?.type, "text", "no words are put into the model's mouth");
  }
  const ids = turns.flatMap(({ blocks }) => blocks.filter(isCall).map((block) => block["id"]));
  assert.equal(new Set(ids).size, ids.length, "ids are unique");
  assert.ok(JSON.stringify(request).split('"cache_control"').length - 1 <= 4, "at most four breakpoints");
}

const isCall = (block: Part): boolean => block.type === "tool_use";
const isThinking = (block: Part | undefined): boolean => block?.type.includes("thinking") === true;

function assertBlock(block: Part, role: string): void {
  if (block.type === "text") assert.notEqual(String(block["text"]).trim(), "", "no text is blank");
  if (isThinking(block) || isCall(block)) {
    assert.equal(role, "assistant");
    assert.ok(!("cache_control" in block), "the model's own blocks carry no breakpoint");
  }
  if (block.type !== "tool_result") return;
  const content = block["content"] as readonly Part[];
  assert.ok(content.length > 0, "no result is empty");
  for (const part of content) assertBlock(part, role);
  if (block["is_error"] === true) assert.ok(content.every((part) => part.type === "text"));
}
