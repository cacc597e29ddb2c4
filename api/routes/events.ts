/** Owns: the routes of the event streams (REQ-BED-011). Not here: what the streams send (../events/). */
import { createRoute, z } from "@hono/zod-openapi";
import type { Opening } from "../../db/orders.ts";
import { CLIENT_ID } from "../../protocol/formats.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { CombinedStreams } from "../events/combined-streams.ts";
import { ConversationFeed } from "../events/conversation-feed.ts";
import { ListFeed } from "../events/list-feed.ts";
import { OpenStreams } from "../events/open-streams.ts";
import { SseWriter } from "../events/sse-writer.ts";
import { notFound } from "../problem.ts";
import { createRouter } from "../router.ts";
import { clientId, conversationParams, pathId } from "../schemas/common.ts";
import { eventData } from "../schemas/event.ts";
import { BODY, problems } from "../schemas/problem.ts";

/** Bytes of list facts that may wait for one client. */
const WAITING_LIMIT = 1024 * 1024;

const tags = ["Events"];

const stream = (description: string, example: string) => ({
  description,
  content: { "text/event-stream": { schema: z.string(), example } },
});

/** From where a client goes on that comes back. */
const cursor = {
  headers: z.object({ "last-event-id": z.string().optional() }),
  query: z.object({ after: z.string().optional() }),
};

const cursorIn = (
  headers: z.output<typeof cursor.headers>,
  { after }: z.output<typeof cursor.query>,
): string | null => orNull(headers["last-event-id"] ?? after ?? "");

const ofOne = createRoute({
  method: "get",
  path: "/api/conversations/{id}/events",
  operationId: "streamConversation",
  ...needs("read"),
  tags,
  summary: "Follow one conversation",
  description:
    "Server-sent events; read them with fetch, for the token goes into a header. `id:` is the event's number in this conversation, `event:` its name, `data:` the JSON that the schema `Event.<name>` describes. Without a cursor: `snapshot`, `synced`, then live. With `Last-Event-ID` or `after`: what was missed, `synced`, then live. A cursor that is unknown here: `resync`, then as without. `text.delta`, `thinking.delta` and `tool.output` are live only and have no `id:`; after `synced` they begin with the text so far. A `heartbeat` comes every 15 s. A client that takes nothing for 30 s is cut off; it resumes by number.",
  request: {
    params: conversationParams,
    ...cursor,
  },
  responses: {
    200: stream(
      "The stream. It ends when the conversation is removed or the server stops.",
      'event: synced\ndata: {"lastEvent":17}\n\nid: 18\nevent: state.changed\ndata: {"state":{"kind":"idle"},"cycleId":"018f…"}\n\n',
    ),
    ...problems("not_found"),
  },
});

const ofAll = createRoute({
  method: "get",
  path: "/api/events",
  operationId: "streamList",
  ...needs("read"),
  tags,
  summary: "Follow the list",
  description:
    "List-level facts of all conversations but sub-agents, each with the conversation's `id`: `conversation.changed` (also for a new one), `state.changed`, `conversation.deleted`. `id:` is the cursor. Without one: wait for `synced`, read the list, and read it again on `resync`. With `Last-Event-ID` or `after`: the present facts of what has changed since, `synced`, then live; some facts may come twice.",
  request: {
    ...cursor,
  },
  responses: {
    200: stream(
      "The stream.",
      'id: 7813.1767225600\nevent: state.changed\ndata: {"id":"018f…","state":{"kind":"idle"},"cycleId":null}\n\n',
    ),
    ...problems(),
  },
});

const opening = z
  .string()
  .regex(
    new RegExp(CLIENT_ID.source.replace(/\$$/, "(:.{0,40})?$")),
    "An id of a conversation, and its cursor after a colon if there is one.",
  );

const combined = createRoute({
  method: "get",
  path: "/api/stream",
  operationId: "streamMany",
  ...needs("read"),
  tags,
  summary: "Follow the list and many conversations",
  description:
    "One connection for all of them. The first event, `stream.opened`, names the stream; by that name conversations are opened and closed while it is open. The `data:` of every other event but `heartbeat` is `{ conversationId, cursor, data }`: `conversationId` is null for the list, `data` is as in the stream of one conversation or of the list, `cursor` is what to come back with (null: the one before). A conversation that is removed is reported by `conversation.deleted`, one too many by `stream.full`.",
  request: {
    query: z.object({
      list: z.string().optional().openapi({ description: "The list's cursor." }),
      conversation: z
        .union([opening, z.array(opening)])
        .optional()
        .openapi({ description: "`id` or `id:cursor`; may be given many times.", example: "018f…:17" }),
    }),
  },
  responses: {
    200: stream(
      "The stream.",
      'event: stream.opened\ndata: {"streamId":"…"}\n\nevent: state.changed\ndata: {"conversationId":"018f…","cursor":"18","data":{"state":{"kind":"idle"},"cycleId":"018f…"}}\n\n',
    ),
    ...problems("invalid_request"),
  },
});

/** Ids of one request: they go through a notification of Postgres, which is bounded. */
const MAX_CHANGES = 40;

const change = createRoute({
  method: "post",
  path: "/api/stream/{streamId}",
  operationId: "changeStream",
  ...needs("read"),
  tags,
  summary: "Open and close conversations in a stream",
  description:
    "One that is open already begins anew with the cursor given. Any process of the API takes this request, whichever has the stream. 404: the stream has ended; open another one with the cursors.",
  request: {
    params: z.object({ streamId: pathId("streamId", "From `stream.opened`.") }),
    body: {
      required: true,
      content: {
        "application/json": {
          schema: z.strictObject({
            open: z
              .array(
                z.strictObject({ id: clientId("A conversation."), cursor: z.string().max(40).optional() }),
              )
              .max(MAX_CHANGES)
              .optional(),
            close: z.array(clientId("A conversation.")).max(MAX_CHANGES).optional(),
          }),
          example: { open: [{ id: "018f6a3e-5f2a-7000-8a1b-3c4d5e6f7a8b", cursor: "17" }], close: [] },
        },
      },
    },
  },
  responses: {
    204: { description: "Done; events of the opened ones follow." },
    ...problems(...BODY, "not_found", "invalid_request"),
  },
});

export function eventRoutes(deps: Deps) {
  const list = new ListFeed(deps);
  const streams = new CombinedStreams(deps, deps.streams);
  const router = createRouter();
  for (const [name, schema] of Object.entries(eventData)) {
    router.openAPIRegistry.register(`Event.${name}`, schema.openapi(`Event.${name}`));
  }

  const responses = new OpenStreams(deps);

  return router
    .openapi(ofOne, async (c) => {
      const { id } = c.req.valid("param");
      const writer = new SseWriter(() => feed.check(), deps.heartbeatMs);
      const feed = new ConversationFeed(deps, id, writer);
      void feed.ended.then(() => writer.end());
      await feed.open(cursorIn(c.req.valid("header"), c.req.valid("query")));
      return responses.respond(writer, c.var.caller);
    })
    .openapi(ofAll, async (c) => {
      const writer = new SseWriter(undefined, deps.heartbeatMs);
      const close = await list.open(
        cursorIn(c.req.valid("header"), c.req.valid("query")),
        ({ name, data, cursor: number }) => {
          writer.send({ name, data, number });
          if (writer.waiting > WAITING_LIMIT) writer.cut();
        },
      );
      void writer.closed.then(close);
      return responses.respond(writer, c.var.caller);
    })
    .openapi(combined, async (c) => {
      const { list: cursor = "", conversation = [] } = c.req.valid("query");
      const combinedStream = streams.create();
      try {
        await combinedStream.openList(list, orNull(cursor));
      } catch (error) {
        combinedStream.writer.cut();
        throw error;
      }
      combinedStream.change({ open: [conversation].flat().map(openingOf), close: [] });
      return responses.respond(combinedStream.writer, c.var.caller);
    })
    .openapi(change, async (c) => {
      const { open: toOpen = [], close = [] } = c.req.valid("json");
      const opened = toOpen.map(({ id, cursor = "" }) => ({ id, cursor: orNull(cursor) }));
      if (!(await streams.change(c.req.valid("param").streamId, { open: opened, close })))
        throw notFound("stream");
      return c.body(null, 204);
    });
}

const orNull = (cursor: string): string | null => (cursor === "" ? null : cursor);

function openingOf(text: string): Opening {
  const colon = text.indexOf(":");
  return colon === -1
    ? { id: text, cursor: null }
    : { id: text.slice(0, colon), cursor: orNull(text.slice(colon + 1)) };
}
