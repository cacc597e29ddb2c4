/** Owns: the schemas of a conversation and of what is sent to make, list and change one (docs/http.md). */
import { z } from "@hono/zod-openapi";
import type { ConversationView } from "../../db/views.ts";
import { QUEUE_HOLDS, type QueuedMessage, type QueueHold } from "../../machine/conversation.ts";
import { answer, clientId, parameter, pending, queryInteger, text, time } from "./common.ts";
import { delivery, imageBlock, newMessage, tokenUsage } from "./message.ts";
import { spent } from "./spending.ts";
import { state } from "./state.ts";

/** The support for Restricted mode on a host. */
export const sandbox = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("available"), abi: z.int().openapi({ description: "Of Landlock." }) }),
  z.object({
    kind: z.literal("unavailable"),
    reason: z.string().openapi({ description: "Why the kernel does not enforce it." }),
  }),
  z.object({
    kind: z.literal("unknown"),
    reason: z.string().openapi({ description: "Why the host could not find it out." }),
  }),
]);

export const mode = z.enum(["restricted", "unrestricted"]);

export const queuedMessage = answer<QueuedMessage>(
  z
    .object({
      messageId: z.string(),
      delivery: delivery.exclude(["direct"]),
      text: z.string(),
      images: z.array(imageBlock),
      createdAt: time,
    })
    .openapi("QueuedMessage"),
);

export const queueHeld = answer<QueueHold | null>(
  z.enum(QUEUE_HOLDS).nullable().openapi({
    description: "Why the messages that wait start no run until they are released; null: they do.",
  }),
);

export const usage = tokenUsage
  .extend({
    contextUsed: z.int().openapi({ description: "Tokens of the last response: what fills the window." }),
    contextWindow: z.int(),
    contextRatio: z.number(),
    warning: z.boolean().openapi({ description: "80 % of the window or more." }),
  })
  .openapi("Usage", { description: "Sums over the conversation, but for the context." });

export const conversation = answer<ConversationView>(
  z
    .object({
      id: z.string(),
      slug: z.string(),
      title: z.string(),
      cwd: z.string(),
      host: z.string(),
      model: z.string(),
      scripted: z.boolean().openapi({ description: "The answers come from the built-in scripted model." }),
      mode,
      initialMode: mode.openapi({ description: "The mode that it began in." }),
      sandbox,
      state,
      queue: z.array(queuedMessage),
      queueHeld,
      usage,
      spent: spent.nullable().openapi({
        description: "With its sub-agents. null: it is one, and its parent's `spent` includes it.",
      }),
      parentId: z.string().nullable(),
      continuedFrom: z.string().nullable(),
      continuedTo: z.array(z.string()),
      userInitiated: z.boolean(),
      archived: z.boolean(),
      lastEvent: z.int(),
      createdAt: time,
      updatedAt: time,
    })
    .openapi("Conversation", {
      example: {
        id: "018f6a3e-5f2a-7000-8a1b-3c4d5e6f7a8b",
        slug: "fix-the-flaky-test",
        title: "Fix the flaky test",
        cwd: "/home/me/app",
        host: "laptop",
        model: "claude-sonnet-5-5",
        scripted: false,
        mode: "restricted",
        initialMode: "restricted",
        sandbox: { kind: "available", abi: 7 },
        state: { kind: "idle" },
        queue: [],
        queueHeld: null,
        usage: {
          inputTokens: 0,
          outputTokens: 0,
          cacheReadTokens: 0,
          cacheCreationTokens: 0,
          contextUsed: 0,
          contextWindow: 200000,
          contextRatio: 0,
          warning: false,
        },
        spent: { tokens: 0, dollars: 0 },
        parentId: null,
        continuedFrom: null,
        continuedTo: [],
        userInitiated: true,
        archived: false,
        lastEvent: 1,
        createdAt: "2026-01-31T09:30:00.000Z",
        updatedAt: "2026-01-31T09:30:00.000Z",
      },
    }),
);

export const pendingConversation = answer<ConversationView & { readonly pending?: true }>(
  z.intersection(conversation, z.object({ pending })),
);

const title = text.refine((value) => value.length <= 500, { message: "A title has at most 500 characters." });

export const newConversation = z
  .strictObject({
    cwd: text.optional().openapi({
      description: "An absolute path of a directory on the tool host. May be left out with `continuedFrom`.",
      example: "/home/me/app",
    }),
    host: text.optional().openapi({
      description:
        "The tool host that has the directory, by its name: one of `/api/hosts`. The default one unless given; without a `cwd`, the host of the conversation that it goes on from.",
    }),
    id: clientId("A new UUIDv7 unless given.").optional(),
    model: z
      .string()
      .regex(/^[\w.:/@-]{1,200}$/, "A model's id has 1 to 200 letters, digits and ._:/@-")
      .optional(),
    title: title.optional().openapi({ description: "Made from the first message unless given." }),
    message: newMessage.optional().openapi({ description: "Sent at once." }),
    continuedFrom: z
      .strictObject({
        id: z.string(),
        seed: z.boolean().openapi({
          description:
            "Puts the summary before the first message, or an excerpt where no summary could be written: the last requests and the files that were changed. Only for a conversation whose context is exhausted.",
        }),
        queue: z.boolean().optional().openapi({
          description:
            "The messages that wait in an exhausted conversation come along, held, as follow-ups. `true` unless given.",
        }),
      })
      .optional()
      .openapi({ description: "Goes on from another conversation." }),
  })
  .openapi("NewConversation");

export const conversationChange = z
  .strictObject({
    title: title.refine((value) => value.trim() !== "", { message: "A title is not blank." }).optional(),
    archived: z.boolean().optional().openapi({ description: "Archiving stops the work first." }),
  })
  .openapi("ConversationChange");

export const listQuery = z.object({
  archived: parameter(z.enum(["false", "true", "all"]).default("false")),
  q: z.string().max(1_000).default("").openapi({ description: "Part of a title, in any case." }),
  limit: queryInteger(1, 1_000).openapi({ description: "100 unless given." }),
  cursor: parameter(z.string().optional()).openapi({ description: "`nextCursor` of the page before." }),
});
