/** Owns: a user's commands to a conversation, besides messages: cancel, release, approve, downgrade, wind up. */
import { createRoute, z } from "@hono/zod-openapi";
import { versionOf } from "../../db/conversations.ts";
import type { RowVersion } from "../../protocol/commit.ts";
import {
  cancelUpdate,
  decideUpgradeUpdate,
  downgradeUpdate,
  releaseQueueUpdate,
  triggerContinuationUpdate,
} from "../../protocol/workflow.ts";
import { byOf } from "../access/access.ts";
import { needs, requireRoleToDecide } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { notFound, Problem } from "../problem.ts";
import { awaitRevision } from "../projection.ts";
import { refuseOverLimit } from "../spending.ts";
import { acceptEmptyBody, createRouter } from "../router.ts";
import { conversationParams, pending } from "../schemas/common.ts";
import { mode, queuedMessage, queueHeld } from "../schemas/conversation.ts";
import { BODY, problems, SPENDING } from "../schemas/problem.ts";
import { state } from "../schemas/state.ts";

const tags = ["Control"];

const cancelOrder = z
  .strictObject({
    queue: z.enum(["run", "hold", "clear"]).optional().openapi({ description: "`run` unless given." }),
    clearQueue: z.boolean().optional().openapi({ description: "`true` is another word for `clear`." }),
  })
  .refine(({ queue, clearQueue }) => clearQueue !== true || queue === undefined || queue === "clear", {
    path: ["queue"],
    message: "`clearQueue` says that the queue is cleared, `queue` says something else.",
  });

const INVALID_BODY = [...BODY, "not_found", "invalid_request"] as const;

const cancel = createRoute({
  method: "post",
  path: "/api/conversations/{id}/cancel",
  operationId: "cancel",
  ...needs("talk"),
  tags,
  summary: "Cancel the work",
  description:
    "Answered as soon as `cancelling` or `idle` is committed; the stream tells when everything is dead. Nothing to cancel is no error. `queue` says what becomes of the messages that wait: they `run` (the next one starts when everything is stopped), they are on `hold` until they are released, or they are dropped (`clear`). `run` leaves a queue that is held as it is. `next` is the message that starts next.",
  middleware: acceptEmptyBody,
  request: {
    params: conversationParams,
    body: {
      required: false,
      content: {
        "application/json": {
          schema: cancelOrder,
          example: { queue: "hold" },
        },
      },
    },
  },
  responses: {
    202: {
      description: "The state now, and what follows.",
      content: {
        "application/json": {
          schema: z.object({
            state,
            // `nullable` of a schema with a name asks for an object and for null at once.
            next: z
              .union([queuedMessage, z.null()])
              .openapi({ description: "null: nothing starts by itself." }),
            queueHeld,
            pending,
          }),
        },
      },
    },
    ...problems(...INVALID_BODY),
  },
});

const releaseQueue = createRoute({
  method: "post",
  path: "/api/conversations/{id}/queue/release",
  operationId: "releaseQueue",
  ...needs("talk"),
  tags,
  summary: "Let the queue go on",
  description:
    "Ends the hold of the waiting messages (`queueHeld`): the first follow-up starts now, or when the agent is at rest. A queue that is not held stays as it is: no error.",
  request: { params: conversationParams },
  responses: {
    202: {
      description: "The state now.",
      content: { "application/json": { schema: z.object({ state, pending }) } },
    },
    ...problems(...BODY, "not_found", "context_exhausted", "sub_agent_read_only"),
  },
});

const approve = createRoute({
  method: "post",
  path: "/api/conversations/{id}/approval",
  operationId: "decideUpgrade",
  ...needs("talk"),
  tags,
  summary: "Decide on a mode upgrade",
  description:
    "The agent asks in the state `awaiting_mode_approval`; the first decision on a call wins, and the same one again is answered alike. To approve needs the role `approve`; the message of the call and `mode.changed` name the token.",
  request: {
    params: conversationParams,
    body: {
      required: true,
      content: {
        "application/json": {
          schema: z.strictObject({
            decision: z.enum(["approve", "deny"]),
            toolCallId: z.string().min(1).max(200).openapi({ description: "Of the state's `toolCall`." }),
          }),
          example: { decision: "approve", toolCallId: "toolu_01" },
        },
      },
    },
  },
  responses: {
    202: {
      description: "The mode and the state now.",
      content: { "application/json": { schema: z.object({ mode, state, pending }) } },
    },
    ...problems(...INVALID_BODY, "no_pending_approval", "approval_mismatch", "context_exhausted"),
  },
});

const changeMode = createRoute({
  method: "post",
  path: "/api/conversations/{id}/mode",
  operationId: "changeMode",
  ...needs("talk"),
  tags,
  summary: "Switch to Restricted mode",
  description:
    "Holds from the next tool on. The other way needs a request of the agent and an approval: 409 `approval_required`.",
  request: {
    params: conversationParams,
    body: {
      required: true,
      content: { "application/json": { schema: z.strictObject({ mode }), example: { mode: "restricted" } } },
    },
  },
  responses: {
    202: {
      description: "The mode now.",
      content: { "application/json": { schema: z.object({ mode, pending }) } },
    },
    ...problems(
      ...INVALID_BODY,
      "approval_required",
      "sandbox_unavailable",
      "sandbox_unknown",
      "context_exhausted",
      "sub_agent_read_only",
    ),
  },
});

const continuation = createRoute({
  method: "post",
  path: "/api/conversations/{id}/continuation",
  operationId: "triggerContinuation",
  ...needs("talk"),
  tags,
  summary: "Wind up with a summary",
  description:
    "Asks for the summary that ends this conversation, at any usage of the context. Then start a new one with `continuedFrom`.",
  request: { params: conversationParams },
  responses: {
    202: {
      description: "The state now.",
      content: { "application/json": { schema: z.object({ state, pending }) } },
    },
    ...problems(
      ...BODY,
      "not_found",
      "agent_busy",
      "cancellation_in_progress",
      "context_exhausted",
      "nothing_to_summarise",
      ...SPENDING,
      "sub_agent_read_only",
    ),
  },
});

export function controlRoutes(deps: Deps) {
  const { db, workflows } = deps;

  const rowOf = async (id: string): Promise<RowVersion> => {
    const row = await versionOf(db, id);
    if (row === null) throw notFound();
    return row;
  };
  /** Empty when the row shows the revision. */
  const shown = async (id: string, revision: number): Promise<{ pending?: true }> =>
    (await awaitRevision(deps, id, revision)) ? {} : { pending: true };

  return createRouter()
    .openapi(cancel, async (c) => {
      const { id } = c.req.valid("param");
      const { clearQueue = false, queue = clearQueue ? "clear" : "run" } = c.req.valid("json");
      // A cancel stops the work even while Postgres is away, so the row is read only when the workflow does not answer.
      const exists = async (): Promise<void> => {
        await rowOf(id);
      };
      const { revision, ...cancelled } = await workflows.update(id, cancelUpdate, [{ queue }], exists);
      return c.json({ ...cancelled, ...(await shown(id, revision)) }, 202);
    })
    .openapi(releaseQueue, async (c) => {
      const { id } = c.req.valid("param");
      const asked = { releaseQueue: true, row: await rowOf(id) } as const;
      const { revision, state } = await workflows.update(id, releaseQueueUpdate, [asked]);
      return c.json({ state, ...(await shown(id, revision)) }, 202);
    })
    .openapi(approve, async (c) => {
      const { id } = c.req.valid("param");
      requireRoleToDecide(c.var.caller, c.req.valid("json").decision);
      const asked = { ...c.req.valid("json"), ...byOf(c.var.caller), row: await rowOf(id) };
      const { revision, mode, state } = await workflows.update(id, decideUpgradeUpdate, [asked]);
      return c.json({ mode, state, ...(await shown(id, revision)) }, 202);
    })
    .openapi(changeMode, async (c) => {
      const { id } = c.req.valid("param");
      const row = await rowOf(id);
      if (c.req.valid("json").mode === "unrestricted") {
        throw new Problem(
          "approval_required",
          "Unrestricted mode is asked for by the agent and approved by you: send a message that says what it should do.",
        );
      }
      const { revision, mode } = await workflows.update(id, downgradeUpdate, [{ row }]);
      return c.json({ mode, ...(await shown(id, revision)) }, 202);
    })
    .openapi(continuation, async (c) => {
      const { id } = c.req.valid("param");
      const row = await rowOf(id);
      await refuseOverLimit(deps, { kind: "conversation", id });
      const { revision, state } = await workflows.update(id, triggerContinuationUpdate, [
        { triggerContinuation: true, row },
      ]);
      return c.json({ state, ...(await shown(id, revision)) }, 202);
    });
}
