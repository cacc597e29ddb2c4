/** Owns: the schemas of what was spent, and of the limits on it (docs/spending.md). */
import { z } from "@hono/zod-openapi";
import type { Limit, SpentView } from "../../protocol/spending.ts";
import { answer } from "./common.ts";

const dollars = z.number().nullable();
const tokens = z.int().openapi({ description: "Of every kind, those from the provider's cache included." });

export const spent = answer<SpentView>(
  z
    .object({
      tokens,
      dollars: dollars.openapi({ description: "US dollars; null: part of it has no known price." }),
    })
    .openapi("Spent"),
);

const limit = answer<Limit>(
  z
    .object({
      tokens: z.int().nullable().openapi({ description: "null: no limit." }),
      dollars: dollars.openapi({ description: "US dollars; null: no limit." }),
    })
    .openapi("SpendingLimit"),
);

export const spendingReport = z
  .object({
    day: z
      .object({ date: z.iso.date().openapi({ description: "UTC." }), spent, limit })
      .openapi({ description: "All conversations together, removed ones included." }),
    conversation: z.object({ limit }).openapi({ description: "Of each, with its sub-agents." }),
  })
  .openapi("Spending", {
    example: {
      day: {
        date: "2026-01-31",
        spent: { tokens: 1_234_567, dollars: 3.21 },
        limit: { tokens: null, dollars: 20 },
      },
      conversation: { limit: { tokens: null, dollars: null } },
    },
  });
