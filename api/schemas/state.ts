/** Owns: the schema of a conversation's state (docs/machine.md, State). */
import { z } from "@hono/zod-openapi";
import type { State } from "../../machine/conversation.ts";
import { answer, json, time } from "./common.ts";
import { errorKind, tokenUsage, toolStatus } from "./message.ts";

const toolCall = z
  .object({
    id: z.string(),
    name: z.string(),
    input: json,
    defect: z.enum(["malformed_json", "truncated", "too_long"]).optional(),
  })
  .openapi("ToolCall");

const retry = z
  .object({ at: time, errorKind, message: z.string() })
  .nullable()
  .openapi({ description: "A failed request that will be asked again: when and why." });

const lost = z.int().openapi({ description: "How often in a row this attempt was lost with its worker." });

const round = {
  remaining: z.array(toolCall),
  completed: z.array(z.object({ toolCallId: z.string(), status: toolStatus })),
};

export const subAgentOutcome = z.union([
  z.object({ success: z.boolean(), result: z.string() }),
  z.object({ error: z.string(), errorKind, partialResult: z.string().optional() }),
]);

const subAgentTask = z.object({
  id: z.string(),
  task: z.string(),
  model: z.string().optional(),
  timeoutSeconds: z.number().optional(),
});

const children = {
  pending: z.array(subAgentTask),
  finished: z.array(z.object({ id: z.string(), outcome: subAgentOutcome })),
  all: z.array(subAgentTask),
};

export const summarySource = z.enum(["model", "failed", "cancelled"]).openapi({
  description: "`model`: the summary is worth going on from. Else it only says why there is none.",
});

const cancelling = { kind: z.literal("cancelling"), since: time, by: z.enum(["user", "parent", "timeout"]) };

export const state = answer<State>(
  z
    .union([
      z.object({ kind: z.literal("idle") }),
      z.object({ kind: z.literal("awaiting_llm") }),
      z.object({
        kind: z.literal("llm_requesting"),
        attempt: z.int(),
        lost,
        requestId: z.string(),
        retry,
      }),
      z.object({
        kind: z.literal("tool_executing"),
        current: toolCall,
        operationId: z.string(),
        startedAt: time,
        ...round,
      }),
      z.object({
        kind: z.literal("awaiting_mode_approval"),
        reason: z.string(),
        toolCall,
        ...round,
      }),
      z.object({ kind: z.literal("awaiting_sub_agents"), toolCall, ...children, ...round }),
      z.object({ ...cancelling, stopping: z.literal("request"), requestId: z.string() }),
      z.object({
        ...cancelling,
        stopping: z.literal("tool"),
        operationId: z.string(),
        current: toolCall,
        ...round,
      }),
      z.object({ ...cancelling, stopping: z.literal("sub_agents"), toolCall, ...children, ...round }),
      z.object({ kind: z.literal("error"), message: z.string(), errorKind }),
      z.object({
        kind: z.literal("awaiting_continuation"),
        rejectedToolCalls: z.array(toolCall),
        triggerUsage: tokenUsage,
        attempt: z.int(),
        lost,
        requestId: z.string(),
        retry,
      }),
      z.object({
        kind: z.literal("context_exhausted"),
        summary: z.string(),
        source: summarySource,
        finalUsage: tokenUsage,
      }),
      z.object({ kind: z.literal("completed"), result: z.string(), success: z.boolean() }),
      z.object({
        kind: z.literal("failed"),
        error: z.string(),
        errorKind,
        partialResult: z.string().optional(),
      }),
    ])
    .openapi("State", { description: "What the conversation is doing; `kind` says which fields it has." }),
);
