/** Owns: the routes of the two event streams (REQ-BED-011). Not here: what the streams send (../events/). */
import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../deps.ts";
import { openConversationStream } from "../events/conversation-stream.ts";
import { createListStreams } from "../events/list-stream.ts";
import type { SseWriter } from "../events/sse-writer.ts";
import { createRouter } from "../router.ts";
import { conversationParams } from "../schemas/common.ts";
import { eventData } from "../schemas/event.ts";
import { problems } from "../schemas/problem.ts";

const tags = ["Events"];

const stream = (description: string, example: string) => ({
  description,
  content: { "text/event-stream": { schema: z.string(), example } },
});

const ofOne = createRoute({
  method: "get",
  path: "/api/conversations/{id}/events",
  operationId: "streamConversation",
  tags,
  summary: "Follow one conversation",
  description:
    "Server-sent events; read them with fetch, for the token goes into a header. `id:` is the event's number in this conversation, `event:` its name, `data:` the JSON that the schema `Event.<name>` describes. Without a cursor: `snapshot`, `synced`, then live. With `Last-Event-ID` or `after`: what was missed, `synced`, then live. A cursor that is unknown here: `resync`, then as without. `text.delta`, `thinking.delta` and `tool.output` are live only and have no `id:`. A comment comes every 15 s. A client that takes nothing for 30 s is cut off; it resumes by number.",
  request: {
    params: conversationParams,
    headers: z.object({ "last-event-id": z.string().optional() }),
    query: z.object({ after: z.string().optional() }),
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
  tags,
  summary: "Follow the list",
  description:
    "List-level facts of all conversations but sub-agents, each with the conversation's `id`: `conversation.changed` (also for a new one), `state.changed`, `conversation.deleted`. No replay: wait for `synced`, read the list, and read it again on `resync`.",
  responses: {
    200: stream(
      "The stream.",
      'event: state.changed\ndata: {"id":"018f…","state":{"kind":"idle"},"cycleId":null}\n\n',
    ),
    ...problems(),
  },
});

export function eventRoutes(deps: Deps) {
  const lists = createListStreams(deps);
  const router = createRouter();
  for (const [name, schema] of Object.entries(eventData)) {
    router.openAPIRegistry.register(`Event.${name}`, schema.openapi(`Event.${name}`));
  }

  const open = new Set<SseWriter>();
  deps.closing.addEventListener("abort", () => {
    for (const outbox of open) outbox.end();
  });

  const respond = (outbox: SseWriter): Response => {
    if (deps.closing.aborted) outbox.end();
    else open.add(outbox);
    void outbox.closed.then(() => open.delete(outbox));
    deps.metrics.countStream(outbox.closed);
    return new Response(outbox.readable, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        // Tells proxies not to buffer the response.
        "x-accel-buffering": "no",
      },
    });
  };

  return router
    .openapi(ofOne, async (c) => {
      const { id } = c.req.valid("param");
      const cursor = c.req.valid("header")["last-event-id"] ?? c.req.valid("query").after ?? "";
      return respond(await openConversationStream(deps, id, cursor === "" ? null : cursor));
    })
    .openapi(ofAll, () => respond(lists.open()));
}
