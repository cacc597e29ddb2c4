/**
 * Owns: the routes for pages that are made with the AI SDK's `useChat` (docs/ai-sdk.md): a chat is a conversation, its
 * messages and approvals are those of the other routes.
 */
import { createRoute, z } from "@hono/zod-openapi";
import { conversationExists, versionOf } from "../../db/conversations.ts";
import { findMessage, lastMessages } from "../../db/messages.ts";
import { getConversation } from "../../db/views.ts";
import { decideUpgradeUpdate } from "../../protocol/workflow.ts";
import { runIdOf } from "../chat/chunks.ts";
import { streamRun, type RunPlace } from "../chat/stream.ts";
import { uiMessagesOf } from "../chat/ui-messages.ts";
import { createConversation } from "../create-conversation.ts";
import { byOf, type Caller } from "../access/access.ts";
import { needs, requireRoleToDecide } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { OpenStreams } from "../events/open-streams.ts";
import { readImages } from "../images.ts";
import { notFound, Problem } from "../problem.ts";
import { awaitRevision } from "../projection.ts";
import { createRouter } from "../router.ts";
import {
  chatRequest,
  orderOf,
  runPlaceIn,
  streamParams,
  uiMessage,
  type ChatOrder,
  type ChatRequest,
} from "../schemas/chat.ts";
import { conversationParams, queryInteger } from "../schemas/common.ts";
import { BODY, problems, SPENDING } from "../schemas/problem.ts";
import { sendMessage } from "../send-message.ts";

const tags = ["AI SDK"];

/** Stored messages of one answer. */
const MOST_READ = 1_000;

const STREAM = {
  description:
    "UI message chunks, one a line of `data:`, then `[DONE]`. It ends with the run, and when the run waits for an approval.",
  content: {
    "text/event-stream": {
      schema: z.string(),
      example: 'data: {"type":"start","messageId":"018f….answer"}\n\ndata: {"type":"start-step"}\n\n',
    },
  },
  headers: z.object({
    "x-workflow-run-id": z.string().openapi({ description: "Names this stream for `GET …/{id}/stream`." }),
    "x-vercel-ai-ui-message-stream": z.literal("v1"),
  }),
};

const chat = createRoute({
  method: "post",
  path: "/api/ai/chat",
  operationId: "chat",
  ...needs("talk"),
  tags,
  summary: "Send a message, or decide an approval, and follow the run",
  description:
    "For `useChat` of the AI SDK. The last message counts; the same one again is taken once, and answered with its run. To approve needs the role `approve`. A client that goes away stops nothing.",
  request: { body: { required: true, content: { "application/json": { schema: chatRequest } } } },
  responses: {
    200: STREAM,
    ...problems(
      ...BODY,
      "not_found",
      "agent_busy",
      "cancellation_in_progress",
      "context_exhausted",
      "message_id_conflict",
      "no_pending_approval",
      "approval_mismatch",
      "sub_agent_read_only",
      "invalid_request",
      "invalid_cwd",
      "invalid_image",
      "queue_full",
      ...SPENDING,
      "sandbox_unknown",
    ),
  },
});

const read = createRoute({
  method: "get",
  path: "/api/ai/chat/{id}",
  operationId: "readChat",
  ...needs("read"),
  tags,
  summary: "Read a chat",
  description:
    "What was said, as messages for `useChat`: of the last 1,000 stored messages, without the answer of a run that is under way. A chat that has not begun is empty.",
  request: { params: conversationParams },
  responses: {
    200: {
      description: "Ascending.",
      content: { "application/json": { schema: z.object({ messages: z.array(uiMessage) }) } },
    },
    ...problems("not_found"),
  },
});

const follow = createRoute({
  method: "get",
  path: "/api/ai/chat/{id}/stream",
  operationId: "followChat",
  ...needs("read"),
  tags,
  summary: "Follow a run again",
  description:
    "By the chat's id: the run that is under way, from its beginning; 204 if there is none. By the value of `x-workflow-run-id`: that run, whether or not it has ended. `startIndex` leaves out the chunks that the client has.",
  request: {
    params: streamParams,
    query: z.object({ startIndex: queryInteger(0, 1_000_000_000) }),
  },
  responses: { 200: STREAM, 204: { description: "Nothing is under way." }, ...problems("not_found") },
});

export function chatRoutes(deps: Deps) {
  const responses = new OpenStreams(deps);

  const respond = async (place: RunPlace, caller: Caller, has: number): Promise<Response> =>
    responses.respond(await streamRun(deps, place, has), caller, {
      "x-workflow-run-id": [place.conversationId, place.runId, place.decided ?? []].flat().join("."),
      "x-vercel-ai-ui-message-stream": "v1",
    });

  return createRouter()
    .openapi(chat, async (c) => {
      const request = c.req.valid("json");
      const order = orderOf(request);
      switch (order.kind) {
        case "message":
          await submit(deps, request, order.message, c.req.raw.signal);
          return respond(
            { conversationId: request.id, runId: order.message.id, decided: null },
            c.var.caller,
            0,
          );
        case "decision":
          requireRoleToDecide(c.var.caller, order.decision);
          return respond(
            await decide(deps, request.id, { ...order, ...byOf(c.var.caller) }),
            c.var.caller,
            0,
          );
      }
    })
    .openapi(read, async (c) => {
      const { id } = c.req.valid("param");
      return c.json({ messages: uiMessagesOf(id, await lastMessages(deps.db, id, MOST_READ)) }, 200);
    })
    .openapi(follow, async (c) => {
      const { startIndex = 0 } = c.req.valid("query");
      const { conversationId, runId, decided } = runPlaceIn(c.req.valid("param").id);
      if (runId === null) {
        const active = await activeRun(deps, conversationId);
        return active === null
          ? c.body(null, 204)
          : respond({ conversationId, runId: active, decided }, c.var.caller, startIndex);
      }
      if ((await findMessage(deps.db, conversationId, runId)) === null) throw notFound("run");
      return respond({ conversationId, runId, decided }, c.var.caller, startIndex);
    });
}

type ChatMessage = Extract<ChatOrder, { readonly kind: "message" }>["message"];

/** Resolves when the message is stored, in a new conversation if there is none of the chat's id. */
async function submit(
  deps: Deps,
  { id, cwd, model }: ChatRequest,
  message: ChatMessage,
  gone: AbortSignal,
): Promise<void> {
  const send = () => sendMessage(deps, id, message, () => readImages(message, "messages.", gone));
  if (await conversationExists(deps.db, id)) {
    await send();
    return;
  }
  const [home] = cwd === undefined ? await deps.workflows.listDirectories(deps.toolHost, "") : [cwd];
  try {
    await createConversation(deps, { id, cwd: home, model, message }, gone);
  } catch (error) {
    // The same request came twice, and the other one was faster.
    if (!(error instanceof Problem && error.code === "already_exists")) throw error;
    await send();
  }
}

type Decided = Extract<ChatOrder, { readonly kind: "decision" }> & { readonly by?: string };

async function decide(
  deps: Deps,
  conversationId: string,
  { answerId, decision, toolCallId, by }: Decided,
): Promise<RunPlace> {
  const row = await versionOf(deps.db, conversationId);
  const runId = runIdOf(answerId);
  if (row === null || runId === null) throw notFound();
  const asked = { decision, toolCallId, row, ...(by === undefined ? {} : { by }) };
  const { revision } = await deps.workflows.update(conversationId, decideUpgradeUpdate, [asked]);
  await awaitRevision(deps, conversationId, revision);
  return { conversationId, runId, decided: toolCallId };
}

/** The run that is under way; null: there is none. A chat that has not begun is no error. */
async function activeRun({ db }: Deps, id: string): Promise<string | null> {
  const conversation = await getConversation(db, id);
  switch (conversation?.state.kind) {
    case "awaiting_llm":
    case "llm_requesting":
    case "tool_executing":
    case "awaiting_mode_approval":
    case "awaiting_sub_agents":
    case "cancelling": {
      const [last] = await lastMessages(db, id, 1);
      return last?.cycleId ?? null;
    }
    case undefined:
    case "idle":
    case "error":
    case "awaiting_continuation":
    case "context_exhausted":
    case "completed":
    case "failed":
      return null;
  }
}
