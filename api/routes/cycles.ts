/** Owns: `…/cycles`: what happened, as a user or the model saw it (docs/http.md, Cycle). */
import { createRoute, z } from "@hono/zod-openapi";
import { conversationExists } from "../../db/conversations.ts";
import { readCycleMessages } from "../../db/cycles.ts";
import { foldCycles, viewOf } from "../../machine/cycles.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { notFound } from "../problem.ts";
import { createRouter, invalidRequest } from "../router.ts";
import { conversationParams } from "../schemas/common.ts";
import { cycle, cyclesQuery } from "../schemas/cycle.ts";
import { problems } from "../schemas/problem.ts";

const LIMIT = 20;

const read = createRoute({
  method: "get",
  path: "/api/conversations/{id}/cycles",
  operationId: "readCycles",
  ...needs("read"),
  tags: ["Messages"],
  summary: "Read what happened, cycle by cycle",
  description:
    "A cycle is a message that starts a run, everything that came of it, and the stop that ended it. As `steps` for people, or as `rounds`, as the model was served. Ascending, the last ones first: page back with `before` = the first cycle's id. `between` has the messages that belong to no cycle.",
  request: { params: conversationParams, query: cyclesQuery },
  responses: {
    200: {
      description: "The cycles.",
      content: {
        "application/json": {
          schema: z.object({ cycles: z.array(cycle), between: z.array(z.string()).readonly() }),
          example: {
            cycles: [
              {
                id: "m1",
                root: "m1",
                startedAt: "2026-01-31T09:30:00.000Z",
                stoppedAt: "2026-01-31T09:30:04.000Z",
                reason: "completed",
                steps: [
                  { kind: "user", messageId: "m1", delivery: "direct" },
                  {
                    kind: "ai_block",
                    item: { type: "assistant", text: "Let me look." },
                    groups: [
                      {
                        kind: "bash",
                        calls: [
                          {
                            toolCallId: "toolu_01",
                            name: "bash",
                            input: { command: "npm test" },
                            status: "completed",
                            durationMs: 2310,
                          },
                        ],
                      },
                    ],
                  },
                ],
              },
            ],
            between: [],
          },
        },
      },
    },
    ...problems("not_found", "invalid_request"),
  },
});

export function cycleRoutes({ db }: Deps) {
  return createRouter().openapi(read, async (c) => {
    const { id } = c.req.valid("param");
    const { view, before, limit = LIMIT } = c.req.valid("query");
    if (!(await conversationExists(db, id))) throw notFound();
    const messages = await readCycleMessages(db, id, { before, limit });
    if (messages === null) {
      throw invalidRequest([
        { path: "before", message: "Neither a cycle of this conversation nor a sequence." },
      ]);
    }
    const { cycles, between } = foldCycles(messages);
    return c.json({ cycles: cycles.map((found) => viewOf(found, view)), between }, 200);
  });
}
