/**
 * Owns: what was said in a conversation as messages of the AI SDK, for a page that is loaded again. A run that has not
 * ended is left out: the page follows it (docs/ai-sdk.md). Pure.
 */
import type { Block, Message } from "../../machine/message.ts";
import { answerIdOf, RunChunks, type Chunk } from "./chunks.ts";
import { newRun } from "./run.ts";

type Tool = {
  readonly type: "dynamic-tool";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  readonly approval?: { readonly id: string; readonly approved: boolean };
} & (
  | { readonly state: "input-available" }
  | { readonly state: "output-available"; readonly output: string }
  | { readonly state: "output-error"; readonly errorText: string }
);

type Part =
  | { readonly type: "step-start" }
  | {
      readonly type: "text" | "reasoning";
      readonly id?: string;
      readonly text: string;
      readonly state: "done";
    }
  | { readonly type: "file"; readonly mediaType: string; readonly url: string }
  | {
      readonly type: "data-user" | "data-note";
      readonly id: string;
      readonly data: { readonly text: string };
    }
  | Tool;

/** What `ai` calls a UIMessage. */
export type UiMessage = {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly parts: readonly Part[];
};

/**
 * @param messages ascending. Those of a run of which the first is missing are left out.
 */
export function uiMessagesOf(conversationId: string, messages: readonly Message[]): UiMessage[] {
  const runs = new Map<string, Message[]>();
  for (const message of messages) {
    const { cycleId } = message;
    if (cycleId === null) continue;
    if (message.id === cycleId) runs.set(cycleId, [message]);
    else runs.get(cycleId)?.push(message);
  }
  return [...runs].flatMap(([id, ofRun]): UiMessage[] => {
    const [first] = ofRun;
    const asked: UiMessage = {
      id,
      role: "user",
      parts: first?.type === "user" ? first.content.map((block) => askedPart(conversationId, block)) : [],
    };
    const { chunks, isEnded } = new RunChunks(id, null).of({ ...newRun(id), messages: ofRun });
    return isEnded ? [asked, { id: answerIdOf(id), role: "assistant", parts: partsOf(chunks) }] : [asked];
  });
}

const askedPart = (conversationId: string, block: Block): Part =>
  block.type === "text"
    ? { type: "text", text: block.text, state: "done" }
    : {
        type: "file",
        mediaType: block.mediaType,
        url: `/api/conversations/${conversationId}/images/${block.hash}`,
      };

/** The parts that a client makes of the chunks. */
function partsOf(chunks: readonly Chunk[]): Part[] {
  const parts: Part[] = [];
  const change = (toolCallId: string, fields: Partial<Tool>): void => {
    const place = parts.findLastIndex(
      (part) => part.type === "dynamic-tool" && part.toolCallId === toolCallId,
    );
    const found = parts[place];
    if (found?.type === "dynamic-tool") parts[place] = { ...found, ...fields } as Tool;
  };
  for (const chunk of chunks)
    switch (chunk.type) {
      case "start-step":
        parts.push({ type: "step-start" });
        break;
      case "text-start":
        parts.push({ type: "text", text: "", state: "done" });
        break;
      case "reasoning-start":
        parts.push({ type: "reasoning", id: chunk.id, text: "", state: "done" });
        break;
      case "text-delta":
      case "reasoning-delta": {
        const last = parts.at(-1);
        if (last?.type === "text" || last?.type === "reasoning")
          parts[parts.length - 1] = { ...last, text: last.text + chunk.delta };
        break;
      }
      case "tool-input-available": {
        const { toolCallId, toolName, input } = chunk;
        parts.push({ type: "dynamic-tool", toolCallId, toolName, input, state: "input-available" });
        break;
      }
      case "tool-approval-response":
        change(chunk.approvalId, { approval: { id: chunk.approvalId, approved: chunk.approved } });
        break;
      case "tool-output-available":
        change(chunk.toolCallId, { state: "output-available", output: chunk.output });
        break;
      case "tool-output-error":
        change(chunk.toolCallId, { state: "output-error", errorText: chunk.errorText });
        break;
      case "data-user":
      case "data-note":
        parts.push(chunk);
        break;
      case "error":
        parts.push({ type: "data-note", id: "error", data: { text: chunk.errorText } });
        break;
      case "start":
      case "finish-step":
      case "text-end":
      case "reasoning-end":
      case "tool-approval-request":
      case "abort":
      case "finish":
    }
  return parts;
}
