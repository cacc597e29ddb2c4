/**
 * Owns: the schemas of the events that streams send (docs/http.md, Events). OpenAPI cannot describe a stream's items,
 * so the schemas stand among the components, each under the name of its event.
 */
import { z } from "@hono/zod-openapi";
import { json, time } from "./common.ts";
import { conversation, mode, queuedMessage, queueHeld, usage } from "./conversation.ts";
import { errorKind, storedMessage } from "./message.ts";
import { spent } from "./spending.ts";
import { state, subAgentOutcome, summarySource } from "./state.ts";

const offset = z.int().openapi({
  description:
    "Where the text belongs, in UTF-16 code units from the beginning of the block or stream. Beyond what you have: a gap, because there was too much to show.",
});
const delta = z.object({ requestId: z.string(), index: z.int(), offset, text: z.string() });

const call = z.object({ method: z.literal("POST"), path: z.string(), body: json });
/** Requests that a client can offer as buttons (../actions.ts). */
const actions = z.object({
  windUp: call.optional().openapi({ description: "Ends this conversation with a summary." }),
  continueWithSummary: call.optional().openapi({ description: "A new conversation that begins with it." }),
  startAnew: call.openapi({ description: "A new conversation in the same directory, without a summary." }),
});

/** The `data:` of every event by its name. */
export const eventData = {
  snapshot: z.object({ conversation, messages: z.array(storedMessage), lastEvent: z.int() }),
  /** Null in the stream of the list, whose events have no numbers. */
  synced: z.object({ lastEvent: z.int().nullable() }),
  resync: z.object({}),
  "message.added": storedMessage,
  "message.removed": z.object({ id: z.string() }),
  "state.changed": z.object({ state, cycleId: z.string().nullable() }),
  "mode.changed": z.object({
    mode,
    by: z.enum(["approval", "user"]),
    person: z.string().optional().openapi({ description: "Who approved: the name of the token." }),
  }),
  "queue.changed": z.object({ queue: z.array(queuedMessage), queueHeld }),
  "usage.changed": z.object({ usage }),
  "spending.changed": spent,
  "context.warned": z.object({ contextRatio: z.number(), actions }),
  "context.exhausted": z.object({ summary: z.string(), source: summarySource, actions }),
  "llm.retry_scheduled": z.object({
    attempt: z.int(),
    delayMs: z.number(),
    at: time,
    errorKind,
    message: z.string(),
  }),
  "subagent.spawned": z.object({ id: z.string(), task: z.string() }),
  "subagent.finished": z.object({ id: z.string(), outcome: subAgentOutcome }),
  "conversation.changed": z.looseObject({ title: z.string(), archived: z.boolean() }),
  "conversation.deleted": z.object({}),
  "stream.opened": z.object({ streamId: z.string() }),
  "stream.full": z.object({ conversationId: z.string(), most: z.int() }),
  heartbeat: z.object({
    everyMs: z.int().openapi({ description: "A connection that is silent for twice as long is dead." }),
  }),
  "text.delta": delta,
  "thinking.delta": delta,
  "tool.output": z.object({
    toolCallId: z.string(),
    stream: z.enum(["stdout", "stderr"]),
    offset,
    text: z.string(),
  }),
} as const;

export type EventName = keyof typeof eventData;
