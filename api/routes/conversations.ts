/** Owns: `/api/conversations`: making, listing, reading, changing and removing conversations. */
import { createRoute } from "@hono/zod-openapi";
import { z } from "@hono/zod-openapi";
import {
  children,
  conversationExists,
  versionOf,
  InvalidCursor,
  listConversations,
  setTitle,
} from "../../db/conversations.ts";
import { type ConversationView, getConversation } from "../../db/views.ts";
import { archiveUpdate, removeUpdate } from "../../protocol/workflow.ts";
import { createConversation } from "../create-conversation.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { notFound, Problem } from "../problem.ts";
import { awaitRevision } from "../projection.ts";
import { createRouter, invalidRequest } from "../router.ts";
import { conversationParams } from "../schemas/common.ts";
import {
  conversation,
  conversationChange,
  listQuery,
  newConversation,
  pendingConversation,
} from "../schemas/conversation.ts";
import { BODY, problems, SPENDING } from "../schemas/problem.ts";

const tags = ["Conversations"];

const create = createRoute({
  method: "post",
  path: "/api/conversations",
  operationId: "createConversation",
  ...needs("talk"),
  tags,
  summary: "Start a conversation",
  description:
    "Checks the directory on the tool host, makes the conversation, and sends the first message if there is one. Answered after the commit. With an id of your own, a repeat after a 503 tells by `already_exists` that the first try got through; its message is then sent with `POST …/messages` under the same message id.",
  request: {
    body: {
      required: true,
      content: {
        "application/json": {
          schema: newConversation,
          example: { cwd: "/home/me/app", message: { text: "Why is the login test flaky?" } },
        },
      },
    },
  },
  responses: {
    201: {
      description: "The conversation.",
      content: { "application/json": { schema: pendingConversation } },
    },
    ...problems(
      ...BODY,
      "not_found",
      "already_exists",
      "no_summary",
      "invalid_request",
      "invalid_cwd",
      "invalid_image",
      "sandbox_unknown",
      ...SPENDING,
    ),
  },
});

const list = createRoute({
  method: "get",
  path: "/api/conversations",
  operationId: "listConversations",
  ...needs("read"),
  tags,
  summary: "List conversations",
  description: "Newest first, sub-agents left out.",
  request: { query: listQuery },
  responses: {
    200: {
      description: "A page.",
      content: {
        "application/json": {
          schema: z.object({
            conversations: z.array(conversation).readonly(),
            nextCursor: z.string().nullable(),
          }),
        },
      },
    },
    ...problems("invalid_request"),
  },
});

const get = createRoute({
  method: "get",
  path: "/api/conversations/{id}",
  operationId: "getConversation",
  ...needs("read"),
  tags,
  summary: "Read a conversation",
  description: "As it is stored: also while Temporal is down.",
  request: { params: conversationParams },
  responses: {
    200: {
      description: "The conversation.",
      content: { "application/json": { schema: conversation } },
    },
    ...problems("not_found"),
  },
});

const change = createRoute({
  method: "patch",
  path: "/api/conversations/{id}",
  operationId: "changeConversation",
  ...needs("talk"),
  tags,
  summary: "Rename or archive",
  description: "Archiving stops the work first. A message to an archived conversation un-archives it.",
  request: {
    params: conversationParams,
    body: {
      required: true,
      content: { "application/json": { schema: conversationChange, example: { title: "Login test" } } },
    },
  },
  responses: {
    200: {
      description: "The conversation.",
      content: { "application/json": { schema: pendingConversation } },
    },
    ...problems(...BODY, "not_found", "invalid_request"),
  },
});

const remove = createRoute({
  method: "delete",
  path: "/api/conversations/{id}",
  operationId: "removeConversation",
  ...needs("talk"),
  tags,
  summary: "Remove a conversation",
  description:
    "Stops its work, which takes at most 5 s, and removes it with its sub-agents. Its streams get `conversation.deleted` and end.",
  request: { params: conversationParams },
  responses: { 204: { description: "It is gone." }, ...problems(...BODY, "not_found") },
});

const listChildren = createRoute({
  method: "get",
  path: "/api/conversations/{id}/children",
  operationId: "listChildren",
  ...needs("read"),
  tags,
  summary: "List its sub-agents",
  description: "Oldest first.",
  request: { params: conversationParams },
  responses: {
    200: {
      description: "The sub-agents' conversations.",
      content: {
        "application/json": { schema: z.object({ conversations: z.array(conversation).readonly() }) },
      },
    },
    ...problems("not_found"),
  },
});

const LIST_LIMIT = 100;

export function conversationRoutes(deps: Deps) {
  const { db, workflows } = deps;

  const read = async (id: string): Promise<ConversationView> => {
    const found = await getConversation(db, id);
    if (found === null) throw notFound();
    return found;
  };

  return createRouter()
    .openapi(create, async (c) => {
      const made = await createConversation(deps, c.req.valid("json"), c.req.raw.signal);
      return c.json(made, 201, { location: `/api/conversations/${made.id}` });
    })
    .openapi(list, async (c) => {
      const { archived, q, limit = LIST_LIMIT, cursor = null } = c.req.valid("query");
      try {
        return c.json(await listConversations(db, { archived, q, limit, cursor }), 200);
      } catch (error) {
        if (error instanceof InvalidCursor)
          throw invalidRequest([{ path: "cursor", message: error.message }]);
        throw error;
      }
    })
    .openapi(get, async (c) => {
      const found = await read(c.req.valid("param").id);
      return c.json(found, 200);
    })
    .openapi(change, async (c) => {
      const { id } = c.req.valid("param");
      const { title, archived } = c.req.valid("json");
      const row = await versionOf(db, id);
      if (row === null) throw notFound();
      let shown = true;
      if (archived !== undefined) {
        const { revision } = await workflows.update(id, archiveUpdate, [{ archived, row }]);
        shown = await awaitRevision(deps, id, revision);
      }
      if (title !== undefined) {
        const event = await setTitle(db, id, title.trim());
        if (event === null) throw notFound();
        workflows.showTitle(id, title, event);
      }
      const changed = await read(id);
      return c.json(shown ? changed : { ...changed, pending: true as const }, 200);
    })
    .openapi(remove, async (c) => {
      const { id } = c.req.valid("param");
      if (!(await conversationExists(db, id))) throw notFound();
      try {
        await workflows.update(id, removeUpdate, [{ remove: true }]);
      } catch (error) {
        // Another request has removed it already: the result is the same.
        if (!(error instanceof Problem && error.code === "not_found")) throw error;
      }
      return c.body(null, 204);
    })
    .openapi(listChildren, async (c) => {
      const { id } = c.req.valid("param");
      const found = await children(db, id);
      if (found.length === 0 && !(await conversationExists(db, id))) throw notFound();
      return c.json({ conversations: found }, 200);
    });
}
