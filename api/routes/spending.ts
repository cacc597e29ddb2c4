/** Owns: the route that says what was spent today, and the limits. */
import { createRoute } from "@hono/zod-openapi";
import { readSums } from "../../db/spending.ts";
import { dayOf, viewSpent } from "../../protocol/spending.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { createRouter } from "../router.ts";
import { problems } from "../schemas/problem.ts";
import { spendingReport } from "../schemas/spending.ts";

const read = createRoute({
  method: "get",
  path: "/api/spending",
  operationId: "readSpending",
  ...needs("read"),
  tags: ["Spending"],
  summary: "Read what was spent today",
  description:
    "By all conversations, from 00:00 UTC on, and the limits for a day and for a conversation. What one conversation has spent is its `spent`.",
  responses: {
    200: {
      description: "The sum and the limits.",
      content: { "application/json": { schema: spendingReport } },
    },
    ...problems(),
  },
});

export function spendingRoutes({ db, spendingLimits: limits }: Deps) {
  return createRouter().openapi(read, async (c) => {
    const date = dayOf(new Date());
    const { day } = await readSums(db, null, date);
    return c.json(
      {
        day: { date, spent: viewSpent(day), limit: limits.day },
        conversation: { limit: limits.conversation },
      },
      200,
    );
  });
}
