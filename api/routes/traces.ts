/** Owns: `…/cycles/{cycleId}/trace`: where the time of a turn went (docs/observability.md). */
import { createRoute, z } from "@hono/zod-openapi";
import { readTurn } from "../../db/turns.ts";
import { PARTS, traceOf, type TurnTrace } from "../../observability/turn.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { notFound } from "../problem.ts";
import { createRouter } from "../router.ts";
import { answer, conversationParams, pathId, time } from "../schemas/common.ts";
import { problems } from "../schemas/problem.ts";

const milliseconds = (description: string) => z.int().openapi({ description });
const part = z.enum(PARTS);

const trace = answer<TurnTrace>(
  z
    .object({
      cycleId: z.string(),
      traceId: z.string().openapi({ description: "In an OpenTelemetry collector." }),
      startedAt: time,
      endedAt: time.nullable().openapi({ description: "null while it goes on." }),
      durationMs: milliseconds("From the message to the end, or until now."),
      reason: z.enum(["completed", "interrupted", "error"]).nullable(),
      summary: z.string().openapi({ description: "One sentence, which names the largest part." }),
      parts: z
        .array(z.object({ part, durationMs: milliseconds("In sum."), share: z.number() }))
        .readonly()
        .openapi({ description: "The largest first. Together they are the whole turn." }),
      spans: z
        .array(
          z.object({
            id: z.string(),
            parentId: z.string().nullable().openapi({ description: "null: of the turn itself." }),
            name: z.string(),
            part: part.nullable().openapi({ description: "null: its children have it." }),
            startMs: milliseconds("From the beginning of the turn."),
            durationMs: milliseconds("Of the span."),
            detail: z.string().nullable(),
          }),
        )
        .readonly()
        .openapi({ description: "In the order of their time; of a long turn the longest." }),
      omitted: z.int().openapi({ description: "Spans of the turn itself that are left out." }),
    })
    .openapi("Trace"),
);

const read = createRoute({
  method: "get",
  path: "/api/conversations/{id}/cycles/{cycleId}/trace",
  operationId: "readTrace",
  ...needs("read"),
  tags: ["Messages"],
  summary: "See where the time of a turn went",
  description:
    "A turn is a cycle. Each moment of it is in one part: waiting in the queue or for a worker, the model, retries, tools, sub-agents, approvals, the database, stopping, or unaccounted for. Also of a turn that goes on. Details older than `TRACE_DAYS` are gone; the parts remain.",
  request: { params: conversationParams.extend({ cycleId: pathId("cycleId", "Of the cycle.") }) },
  responses: {
    200: {
      description: "The trace.",
      content: {
        "application/json": {
          schema: trace,
          example: {
            cycleId: "018f6a3e-5f2a-7000-8a1b-3c4d5e6f7a8b",
            traceId: "018f6a3e5f2a70008a1b3c4d5e6f7a8b",
            startedAt: "2026-01-31T09:30:00.000Z",
            endedAt: "2026-01-31T09:30:04.000Z",
            durationMs: 4000,
            reason: "completed",
            summary: "80 % of 4.0 s went to the model: 1 request, first token after 2.1 s at worst.",
            parts: [{ part: "model", durationMs: 3200, share: 0.8 }],
            spans: [
              {
                ...{ id: "1", parentId: null, name: "request", part: null },
                ...{ startMs: 0, durationMs: 3900, detail: "claude-opus-4-8, 300 tokens" },
              },
            ],
            omitted: 0,
          },
        },
      },
    },
    ...problems("not_found"),
  },
});

export function traceRoutes({ db }: Deps) {
  return createRouter().openapi(read, async (c) => {
    const { id, cycleId } = c.req.valid("param");
    const turn = await readTurn(db, id, cycleId);
    if (turn === null) throw notFound("turn");
    return c.json(traceOf(turn, Date.now()), 200);
  });
}
