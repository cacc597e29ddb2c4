/**
 * Owns: the form of an answer on the wire: its finished message, and the steps that send it, as a stream or at once.
 * Pure except for generated ids.
 * Not here: sending (perform.ts).
 */
import { blockSteps, finish } from "./blocks.ts";
import type { Cue } from "./cues.ts";
import { newId } from "./ids.ts";
import {
  errorBody,
  type ContentBlock,
  type JsonObject,
  type MessageResponse,
  type StopReason,
  type StreamEvent,
  type Usage,
} from "./messages.ts";
import type { Step } from "./perform.ts";
import type { ErrorAnswer, MessageAnswer, Pace, ScriptedBlock } from "./script.ts";
import { estimateTokens } from "./usage.ts";

const DEFAULT_PACE: Pace = { characters: 24, delayMs: 0 };

/** The steps that send a scripted error response. */
export function errorSteps(answer: ErrorAnswer, requestId: string): Step[] {
  const { status, type, message, headers, beforeHeaders = [] } = answer;
  const body = errorBody(type, message, requestId);
  return [...beforeHeaders, { kind: "json", status, body, headers }];
}

/** The steps that send a scripted message; `input` is the input side of the usage. */
export function stepsOf(
  answer: MessageAnswer,
  request: { readonly model: string; readonly stream: boolean },
  input: Usage,
): Step[] {
  const items = answer.content.map((item) => (isBlock(item) ? finish(item) : item));
  const content = items.flatMap((item) => ("block" in item ? [item.block] : []));
  const stopReason = answer.stopReason ?? defaultStopReason(content);
  const usage = {
    ...input,
    output_tokens: content.reduce((sum, block) => sum + estimateTokens(JSON.stringify(block)), 1),
    ...answer.usage,
  };
  const message: MessageResponse = {
    id: newId("msg"),
    type: "message",
    role: "assistant",
    model: request.model,
    content,
    stop_reason: stopReason,
    stop_sequence: answer.stopSequence ?? null,
    stop_details: null,
    container: null,
    usage: wholeUsage(usage),
  };
  const before = answer.beforeHeaders ?? [];
  if (!request.stream)
    return [...before, ...cuesOf(answer), { kind: "json", status: 200, body: message, headers: {} }];

  const steps: Step[] = [...before, { kind: "open" }, ...(answer.beforeStart ?? [])];
  const send = (event: StreamEvent): number => steps.push({ kind: "event", event });
  const opening = {
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: wholeUsage({ ...usage, output_tokens: 1 }),
  };
  send({ type: "message_start", message: { ...message, ...opening } });
  send({ type: "ping" });
  let index = 0;
  for (const item of items) {
    if ("block" in item) {
      steps.push(...blockSteps(item, index, answer.pace ?? DEFAULT_PACE));
      index += 1;
    } else {
      steps.push(item);
    }
  }
  const { stop_sequence } = message;
  send({
    type: "message_delta",
    delta: { stop_reason: stopReason, stop_sequence, stop_details: null, container: null },
    usage: deltaUsage(usage),
  });
  if (answer.withoutMessageStop !== true) send({ type: "message_stop" });
  steps.push({ kind: "end" });
  return steps;
}

function cuesOf(answer: MessageAnswer): Cue[] {
  const inContent = answer.content.flatMap((item): Cue[] => {
    if (!isBlock(item)) return [item];
    return "pieces" in item ? item.pieces.filter((piece) => typeof piece !== "string") : [];
  });
  return [...(answer.beforeStart ?? []), ...inContent];
}

function isBlock(item: ScriptedBlock | Cue): item is ScriptedBlock {
  return ["text", "thinking", "redacted_thinking", "tool_use", "raw"].includes(item.kind);
}

const defaultStopReason = (content: readonly ContentBlock[]): StopReason =>
  content.some((block) => block.type === "tool_use") ? "tool_use" : "end_turn";

function wholeUsage(usage: Usage): JsonObject {
  return {
    ...usage,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cache_creation_input_tokens,
      ephemeral_1h_input_tokens: 0,
    },
    output_tokens_details: null,
    server_tool_use: null,
    service_tier: "standard",
    inference_geo: null,
    speed: null,
  };
}

const deltaUsage = (usage: Usage): JsonObject => ({
  ...usage,
  output_tokens_details: null,
  server_tool_use: null,
});
