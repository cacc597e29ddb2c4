/** Owns: the schemas of request cycles (docs/http.md, Cycle). */
import { z } from "@hono/zod-openapi";
import type { Cycle } from "../../machine/cycles.ts";
import { answer, json, parameter, queryInteger, time } from "./common.ts";
import { delivery, tokenUsage, toolStatus } from "./message.ts";

const step = z
  .discriminatedUnion("kind", [
    z.object({ kind: z.literal("user"), messageId: z.string(), delivery }),
    z.object({
      kind: z.literal("ai_block"),
      item: z
        .object({ type: z.enum(["assistant", "reasoning"]), text: z.string() })
        .nullable()
        .openapi({ description: "null: calls without a text before them." }),
      groups: z.array(
        z.object({
          kind: z.enum(["read", "write", "bash", "other"]),
          calls: z.array(
            z.object({
              toolCallId: z.string(),
              name: z.string(),
              input: json,
              status: toolStatus.nullable().openapi({ description: "null until there is a result." }),
              durationMs: z.number().nullable(),
            }),
          ),
        }),
      ),
    }),
  ])
  .openapi("Step");

const round = z
  .object({
    requestId: z.string(),
    input: z.array(z.string()).openapi({ description: "Ids of what the model had not read before." }),
    output: z.string().openapi({ description: "The id of the agent's message." }),
    results: z.array(z.string()).openapi({ description: "Ids of the results of its calls." }),
    usage: tokenUsage,
    durationMs: z.number(),
  })
  .openapi("Round");

export const cycle = answer<Cycle>(
  z
    .object({
      id: z.string(),
      root: z.string().openapi({ description: "The id of the message that it began with." }),
      startedAt: time,
      stoppedAt: time.nullable().openapi({ description: "null while it goes on." }),
      reason: z.enum(["completed", "interrupted", "error"]).nullable(),
      steps: z.array(step).optional().openapi({ description: "With `view=steps`." }),
      rounds: z.array(round).optional().openapi({ description: "With `view=rounds`." }),
    })
    .openapi("Cycle"),
);

export const cyclesQuery = z.object({
  view: parameter(z.enum(["steps", "rounds"]).default("steps")),
  before: parameter(z.string().optional()).openapi({
    description: "A cycle's id, or a message's sequence: the cycles that began before it.",
  }),
  limit: queryInteger(1, 100).openapi({ description: "20 unless given." }),
});
