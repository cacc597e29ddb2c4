/** Owns: the schemas of messages, sent and stored (docs/http.md, StoredMessage). */
import { z } from "@hono/zod-openapi";
import { IMAGE_TYPES } from "../../images/format.ts";
import type { Message } from "../../machine/message.ts";
import { MAX_MESSAGE_IMAGES } from "../../protocol/formats.ts";
import { answer, clientId, messageText, pending, time } from "./common.ts";

export const delivery = z.enum(["direct", "steer", "followUp"]).openapi({
  description:
    "`direct`: starts a run, refused while the agent works. `steer`: joins the next request. `followUp`: starts a run when this one has ended.",
});

export const tokenUsage = z.object({
  inputTokens: z.int(),
  outputTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheCreationTokens: z.int(),
});

export const errorKind = z.enum([
  "auth",
  "rate_limit",
  "overloaded",
  "network",
  "invalid_request",
  "context_exhausted",
  "runaway",
  "spending_limit",
  "interrupted",
  "unknown",
]);

export const toolStatus = z.enum(["completed", "failed", "cancelled", "skipped", "interrupted"]);

export const imageBlock = z
  .object({
    type: z.literal("image"),
    hash: z
      .string()
      .openapi({ description: "Read the bytes at `GET /api/conversations/{id}/images/{hash}`." }),
    mediaType: z.string(),
    width: z.int(),
    height: z.int(),
  })
  .openapi("ImageBlock");

const block = z
  .discriminatedUnion("type", [z.object({ type: z.literal("text"), text: z.string() }), imageBlock])
  .openapi("Block");

const fileDiff = z
  .object({
    path: z.string().openapi({ description: "Absolute and without links." }),
    change: z.enum(["created", "modified"]),
    diff: z.string().openapi({
      description:
        "A unified diff with three lines of context, at most 32 KiB as JSON; well-formed even if truncated. Empty if there are no lines to show: an empty new file, a content that is no text.",
    }),
    addedLines: z.int().openapi({ description: "Of the whole change, however much of it `diff` shows." }),
    removedLines: z.int(),
    truncated: z.boolean().openapi({ description: "`diff` does not show the whole change." }),
  })
  .openapi("FileDiff");

const stored = {
  id: z.string(),
  sequence: z.int().openapi({ description: "1, 2, 3, … in the order of the conversation." }),
  cycleId: z
    .string()
    .nullable()
    .openapi({ description: "The id of the run's first message; null between runs." }),
  createdAt: time,
};

export const storedMessage = answer<Message>(
  z
    .discriminatedUnion("type", [
      z.object({
        ...stored,
        type: z.literal("user"),
        actor: z.enum(["human", "llm_agent"]),
        content: z.array(block),
        display: z.object({ kind: delivery }),
      }),
      z.object({
        ...stored,
        type: z.literal("agent"),
        actor: z.literal("llm_agent"),
        content: z.array(z.looseObject({ type: z.string() })).openapi({
          description: "The provider's blocks as received.",
        }),
        usage: tokenUsage,
        display: z.object({ requestId: z.string(), stopReason: z.string(), durationMs: z.number() }),
      }),
      z.object({
        ...stored,
        type: z.literal("tool"),
        actor: z.literal("system"),
        content: z.tuple([
          z.object({
            toolCallId: z.string(),
            name: z.string(),
            status: toolStatus,
            output: z.array(block),
            durationMs: z.number(),
          }),
        ]),
        display: z
          .object({
            diffs: z.array(fileDiff).optional().openapi({ description: "What the call changed in files." }),
            subAgents: z.array(z.string()).optional().openapi({
              description:
                "Ids of its sub-agents in the order of the tasks. One that never started is no conversation.",
            }),
            decided: z
              .object({ decision: z.enum(["approve", "deny"]), by: z.string().optional() })
              .optional()
              .openapi({
                description:
                  "Of `request_mode_upgrade`: the decision, and who decided: the name of the token.",
              }),
          })
          .optional()
          .openapi({ description: "For people; the model does not get it." }),
      }),
      z
        .object({
          ...stored,
          type: z.literal("system"),
          actor: z.literal("system"),
          content: z.array(block),
          display: z
            .object({ seed: z.enum(["summary", "excerpt"]) })
            .optional()
            .openapi({ description: "What a continued conversation begins with was made from this." }),
        })
        .openapi({ description: "For the model and the person." }),
      z
        .object({ ...stored, type: z.literal("note"), actor: z.literal("system"), content: z.array(block) })
        .openapi({ description: "For the person only." }),
      z.object({
        ...stored,
        type: z.literal("error"),
        actor: z.literal("system"),
        content: z.tuple([z.object({ errorKind, message: z.string() })]),
      }),
      z.object({
        ...stored,
        type: z.literal("continuation"),
        actor: z.enum(["llm_agent", "system"]),
        content: z.tuple([z.object({ summary: z.string() })]),
      }),
      z.object({
        ...stored,
        type: z.literal("run_stop"),
        actor: z.literal("system"),
        content: z.tuple([z.object({ reason: z.enum(["completed", "interrupted", "error"]) })]),
      }),
    ])
    .openapi("StoredMessage"),
);

const sentImage = z.strictObject({
  mediaType: z.string().openapi({ example: "image/png", description: `One of ${IMAGE_TYPES.join(", ")}.` }),
  data: z.string().openapi({
    description:
      "Base64. At most 10 MiB and 50 megapixels. It is kept upright, scaled to 1568 pixels on its long side, without its metadata; of an animation its first image.",
  }),
});

export const newMessage = z
  .strictObject({
    text: messageText.openapi({
      description: "At most 256 KiB of UTF-8. May be empty with images.",
      example: "Why is the login test flaky?",
    }),
    id: clientId(
      "Makes the submit idempotent: the same id and text again is answered as it stands.",
    ).optional(),
    images: z.array(sentImage).max(MAX_MESSAGE_IMAGES).optional(),
    delivery: delivery.optional(),
  })
  .refine((message) => message.text.trim() !== "" || (message.images ?? []).length > 0, {
    path: ["text"],
    message: "A message without images needs text.",
  })
  .openapi("Message");

export type NewMessage = z.output<typeof newMessage>;

export const sentMessage = z
  .object({
    messageId: z.string(),
    sequence: z.int().nullable().openapi({ description: "null until delivered." }),
    delivery: delivery.openapi({
      description: "What became of it: a steer to an idle conversation is direct.",
    }),
    pending,
  })
  .openapi("SentMessage");
