/**
 * Owns: the schemas of what event streams say (docs/http.md, Events). OpenAPI cannot describe a stream's items,
 * so they stand among the components, each under the name of its event.
 */
import { z } from "@hono/zod-openapi";
import { time } from "./common.ts";
import { conversation, mode, queuedMessage, usage } from "./conversation.ts";
import { errorKind, storedMessage } from "./message.ts";
import { state, subAgentOutcome } from "./state.ts";

const delta = z.strictObject({ requestId: z.string(), index: z.int(), text: z.string() });

/** The `data:` of every event by its name. */
export const eventData = {
  snapshot: z.strictObject({ conversation, messages: z.array(storedMessage), lastEvent: z.int() }),
  synced: z.strictObject({ lastEvent: z.int() }),
  resync: z.strictObject({}),
  "message.added": storedMessage,
  "message.removed": z.strictObject({ id: z.string() }),
  "state.changed": z.strictObject({ state, cycleId: z.string().nullable() }),
  "mode.changed": z.strictObject({ mode, by: z.enum(["approval", "user"]) }),
  "queue.changed": z.strictObject({ queue: z.array(queuedMessage) }),
  "usage.changed": z.strictObject({ usage }),
  "context.warned": z.strictObject({ contextRatio: z.number() }),
  "context.exhausted": z.strictObject({ summary: z.string() }),
  "llm.retry_scheduled": z.strictObject({
    attempt: z.int(),
    delayMs: z.number(),
    at: time,
    errorKind,
    message: z.string(),
  }),
  "subagent.spawned": z.strictObject({ id: z.string(), task: z.string() }),
  "subagent.finished": z.strictObject({ id: z.string(), outcome: subAgentOutcome }),
  "conversation.changed": z.looseObject({ title: z.string(), archived: z.boolean() }),
  "conversation.deleted": z.strictObject({}),
  "text.delta": delta,
  "thinking.delta": delta,
  "tool.output": z.strictObject({
    toolCallId: z.string(),
    stream: z.enum(["stdout", "stderr"]),
    text: z.string(),
  }),
} as const;

export type EventName = keyof typeof eventData;
