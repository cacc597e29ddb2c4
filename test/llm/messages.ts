/** Owns: stored messages for the tests of the request builder. */
import type { Message, MessageBody, ProviderBlock, ToolOutcome, ToolStatus } from "../../machine/message.ts";

/** Numbers bodies as a conversation stores them. */
export function stored(...bodies: readonly MessageBody[]): Message[] {
  return bodies.map((body, index) => ({
    ...body,
    id: `m${index + 1}`,
    sequence: index + 1,
    cycleId: "m1",
    createdAt: "2026-01-01T00:00:00.000Z",
  }));
}

export const text = (words: string) => ({ type: "text", text: words }) as const;
export const image = (hash: string) =>
  ({ type: "image", hash, mediaType: "image/png", width: 1, height: 1 }) as const;
export const call = (id: string, name = "bash"): ProviderBlock => ({ type: "tool_use", id, name, input: {} });

export const user = (...words: readonly string[]): MessageBody => ({
  type: "user",
  actor: "human",
  content: words.map(text),
  display: { kind: "direct" },
});

export const system = (words: string): MessageBody => ({
  type: "system",
  actor: "system",
  content: [text(words)],
});

export const note = (words: string): MessageBody => ({
  type: "note",
  actor: "system",
  content: [text(words)],
});

export function agent(content: readonly ProviderBlock[], stopReason = "end_turn"): MessageBody {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 };
  return {
    type: "agent",
    actor: "llm_agent",
    content,
    usage,
    display: { requestId: "r1", stopReason, durationMs: 1 },
  };
}

export function tool(
  toolCallId: string,
  output: ToolOutcome["output"] | string,
  status: ToolStatus = "completed",
): MessageBody {
  const blocks = typeof output === "string" ? [text(output)] : output;
  return {
    type: "tool",
    actor: "system",
    content: [{ toolCallId, name: "bash", status, output: blocks, durationMs: 1 }],
  };
}

export const runStop: MessageBody = {
  type: "run_stop",
  actor: "system",
  content: [{ reason: "completed" }],
};

export const error: MessageBody = {
  type: "error",
  actor: "system",
  content: [{ errorKind: "network", message: "The network is down." }],
};

export const continuation: MessageBody = {
  type: "continuation",
  actor: "llm_agent",
  content: [{ summary: "What was done." }],
};

/** A red pixel. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
