/** Owns: the messages of a conversation: reading, sending, withdrawing, and the images in them. */
import { createRoute, z } from "@hono/zod-openapi";
import { conversationExists, versionOf } from "../../db/conversations.ts";
import { getImage } from "../../db/images.ts";
import { findMessage, readMessages } from "../../db/messages.ts";
import { IMAGE_HASH } from "../../protocol/formats.ts";
import { withdrawMessageUpdate } from "../../protocol/workflow.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { readImages } from "../images.ts";
import { notFound, Problem } from "../problem.ts";
import { awaitRevision } from "../projection.ts";
import { createRouter } from "../router.ts";
import { conversationParams, pathId, queryInteger } from "../schemas/common.ts";
import { newMessage, sentMessage, storedMessage } from "../schemas/message.ts";
import { BODY, problems, SPENDING } from "../schemas/problem.ts";
import { sendMessage } from "../send-message.ts";

const tags = ["Messages"];
const MAX_SEQUENCE = 2 ** 31 - 1;
const LIMIT = 100;

const read = createRoute({
  method: "get",
  path: "/api/conversations/{id}/messages",
  operationId: "readMessages",
  ...needs("read"),
  tags,
  summary: "Read messages",
  description:
    "Ascending. The bounds are exclusive sequences: with `before` alone the last ones before it, without bounds from the first.",
  request: {
    params: conversationParams,
    query: z.object({
      after: queryInteger(0, MAX_SEQUENCE),
      before: queryInteger(0, MAX_SEQUENCE),
      limit: queryInteger(1, 1_000).openapi({ description: `${LIMIT} unless given.` }),
    }),
  },
  responses: {
    200: {
      description: "The messages.",
      content: { "application/json": { schema: z.object({ messages: z.array(storedMessage).readonly() }) } },
    },
    ...problems("not_found", "invalid_request"),
  },
});

const send = createRoute({
  method: "post",
  path: "/api/conversations/{id}/messages",
  operationId: "sendMessage",
  ...needs("talk"),
  tags,
  summary: "Send a message",
  description:
    "Answered after the commit. While the agent works, a direct message is refused with 409 `agent_busy`: cancel, or send it as a `steer` or `followUp`, which is shown in the queue until it is delivered. With an id of your own, the same message again is answered as it stands; a 503 means that it is not known whether it got through: repeat it with the same id.",
  request: {
    params: conversationParams,
    body: {
      required: true,
      content: {
        "application/json": { schema: newMessage, example: { text: "Run the tests again.", id: "m-17" } },
      },
    },
  },
  responses: {
    202: { description: "Accepted.", content: { "application/json": { schema: sentMessage } } },
    ...problems(
      ...BODY,
      "not_found",
      "agent_busy",
      "cancellation_in_progress",
      "context_exhausted",
      "sub_agent_read_only",
      "message_id_conflict",
      "invalid_request",
      "invalid_image",
      "queue_full",
      ...SPENDING,
    ),
  },
});

const withdraw = createRoute({
  method: "delete",
  path: "/api/conversations/{id}/queue/{messageId}",
  operationId: "withdrawMessage",
  ...needs("talk"),
  tags,
  summary: "Withdraw a queued message",
  description: "Takes back a steer or a follow-up that was not delivered yet.",
  request: {
    params: conversationParams.extend({ messageId: pathId("messageId", "The waiting message's id.") }),
  },
  responses: {
    204: { description: "It is withdrawn." },
    ...problems(...BODY, "not_found", "already_delivered"),
  },
});

const image = createRoute({
  method: "get",
  path: "/api/conversations/{id}/images/{hash}",
  operationId: "readImage",
  ...needs("read"),
  tags,
  summary: "Read an image",
  description: "The bytes under their hash: they never change, so they may be cached for ever.",
  request: {
    params: conversationParams.extend({
      hash: z
        .string()
        .regex(IMAGE_HASH)
        .openapi({
          param: { name: "hash", in: "path" },
          description: "Lower-case hex SHA-256 of the bytes.",
        }),
    }),
  },
  responses: {
    200: {
      description: "The bytes.",
      content: { "image/*": { schema: z.string().openapi({ format: "binary" }) } },
    },
    ...problems("not_found"),
  },
});

export function messageRoutes(deps: Deps) {
  const { db, workflows } = deps;
  return createRouter()
    .openapi(read, async (c) => {
      const { id } = c.req.valid("param");
      const { after, before, limit = LIMIT } = c.req.valid("query");
      const messages = await readMessages(db, id, { after, before, limit });
      if (messages.length === 0 && !(await conversationExists(db, id))) throw notFound();
      return c.json({ messages }, 200);
    })
    .openapi(send, async (c) => {
      const message = c.req.valid("json");
      const prepareImages = () => readImages(message, "", c.req.raw.signal);
      const sent = await sendMessage(deps, c.req.valid("param").id, message, prepareImages);
      return c.json(sent, 202);
    })
    .openapi(withdraw, async (c) => {
      const { id, messageId } = c.req.valid("param");
      const row = await versionOf(db, id);
      if (row === null) throw notFound();
      try {
        const { revision } = await workflows.update(id, withdrawMessageUpdate, [{ messageId, row }]);
        await awaitRevision(deps, id, revision);
      } catch (error) {
        const delivered = error instanceof Problem && error.code === "already_delivered";
        // The workflow knows only the messages that wait; the tables know every id that ever existed.
        if (delivered && (await findMessage(db, id, messageId)) === null) throw notFound("message");
        throw error;
      }
      return c.body(null, 204);
    })
    .openapi(image, async (c) => {
      const { id, hash } = c.req.valid("param");
      const found = await getImage(db, id, hash);
      if (found === null) throw notFound("image");
      return new Response(new Uint8Array(found.bytes), {
        headers: {
          "content-type": found.mediaType,
          "cache-control": "private, max-age=31536000, immutable",
          "content-security-policy": "sandbox",
        },
      });
    });
}
