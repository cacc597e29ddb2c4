/**
 * Owns: performing the operations that the machine orders, each in its own cancellation scope, and turning each result
 * into the one event that answers the operation. Decides nothing about the conversation.
 */
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  patched,
  sleep,
  TimeoutFailure,
  uuid4,
} from "@temporalio/workflow";
import type { EffectInput, Performed, RequestEvent, ToolEvent } from "../protocol/activities.ts";
import type { Operation } from "../machine/effect.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import { namesOf } from "../machine/wording.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import { reasonIn, requestContinuation, requestLlm, takeBack } from "./activities.ts";
import { refusalIn, type Committer } from "./committer.ts";
import type { SubAgents } from "./sub-agents.ts";
import type { ToolHost } from "./tool-host.ts";

/** How often an order of one operation is taken back. Each takes seconds: there are not so many workers without ears. */
const TAKEN_BACK = 10;

/** An operation that must not run twice. */
type Once = { readonly conversationId: string; readonly operationId: string };

/** What an operation needs from its conversation while it runs. */
export type Surroundings = {
  readonly config: ConversationConfig;
  readonly tools: ToolHost;
  readonly subAgents: SubAgents;
  readonly committer: Committer;
};

/** The generation id by which an operation is aborted and answered. */
export function idOf(operation: Operation): string {
  switch (operation.kind) {
    case "request_llm":
    case "request_continuation":
    case "schedule_retry":
      return operation.requestId;
    case "execute_tool":
      return operation.operationId;
    case "spawn_sub_agent":
      return operation.subAgent.id;
  }
}

/** The operation's activity commits the revision that ordered it. Other operations need a commit of their own. */
export function carriesCommit(operation: Operation): boolean {
  switch (operation.kind) {
    case "request_llm":
    case "request_continuation":
    case "execute_tool":
      return true;
    case "schedule_retry":
    case "spawn_sub_agent":
      return false;
  }
}

/** The answer to an operation that ended without one. */
export function lostEvent(operation: Operation): ConversationEvent | null {
  switch (operation.kind) {
    case "request_llm":
    case "request_continuation":
      return { kind: "llm_lost", requestId: operation.requestId };
    case "execute_tool":
      return interrupted(operation.operationId);
    case "schedule_retry":
      return null;
    case "spawn_sub_agent":
      return {
        kind: "sub_agent_finished",
        id: operation.subAgent.id,
        outcome: { error: "The sub-agent was not started.", errorKind: "interrupted" },
      };
  }
}

/** Runs until the operation is over; an abort of the scope ends it early. null: there is nothing to answer. */
export async function perform(
  operation: Operation,
  scope: CancellationScope,
  around: Surroundings,
): Promise<ConversationEvent | null> {
  const { config, tools, subAgents, committer } = around;
  switch (operation.kind) {
    case "request_llm": {
      const { requestId, attempt } = operation;
      const options = { summary: attempt === 1 ? config.model : `${config.model}, attempt ${attempt}` };
      return commitThenRun<RequestEvent>(
        scope,
        committer,
        (input) => requestLlm.executeWithOptions(options, [{ ...input, config, requestId }]),
        (problem) => requestLost(requestId, problem),
      );
    }
    case "request_continuation": {
      const { requestId, rejectedToolCalls } = operation;
      const options = { summary: "summary of the conversation" };
      return commitThenRun<RequestEvent>(
        scope,
        committer,
        (input) =>
          requestContinuation.executeWithOptions(options, [
            { ...input, config, requestId, rejectedTools: namesOf(rejectedToolCalls) },
          ]),
        (problem) => requestLost(requestId, problem),
      );
    }
    case "execute_tool": {
      const { operationId, call, mode } = operation;
      return commitThenRun<ToolEvent>(
        scope,
        committer,
        (input) => tools.execute({ ...input, config, operationId, call, mode }, committer),
        () => interrupted(operationId),
        { conversationId: config.id, operationId },
      );
    }
    case "schedule_retry":
      return scope
        .run(async () => {
          await sleep(operation.delayMs, { summary: "retry" });
          return { kind: "retry_due" as const, requestId: operation.requestId };
        })
        .catch(nothingIfCancelled);
    case "spawn_sub_agent": {
      const { subAgent, mode } = operation;
      const outcome = await scope.run(() => subAgents.run(subAgent, mode, committer.flush()));
      return { kind: "sub_agent_finished", id: subAgent.id, outcome };
    }
  }
}

/**
 * Calls an activity that commits first. If it could not commit, it has not started, so it may be called again once
 * Postgres answers. If it ended without an answer in any other way, it is lost.
 *
 * @param once the operation, if it must not run twice; null: the machine repeats it when it was lost
 */
async function commitThenRun<E extends ConversationEvent>(
  scope: CancellationScope,
  committer: Committer,
  call: (input: EffectInput) => Promise<Performed<E>>,
  lost: (problem: string | null) => E,
  once: Once | null = null,
): Promise<E> {
  let takenBack = 0;
  for (let dispatchAttempt = 0; ; dispatchAttempt++) {
    try {
      while (!committer.hasRoom) await committer.flush();
      const performed = await scope.run(() =>
        call({ ...committer.pending(), dispatchAttempt: dispatchAttempt }),
      );
      // A program that is not ours has answered. Whether one of our workers had begun is unknown.
      if (isUnauthenticated(performed)) return lost(null);
      switch (performed.kind) {
        case "done":
          committer.confirm(performed.committed);
          return performed.event;
        case "superseded":
          committer.confirm(performed.committed);
          return lost(null);
        case "not_started":
          if (scope.consideredCancelled) return lost(null);
          await committer.flush();
      }
    } catch (error) {
      if (isCancellation(error)) return lost(null);
      if (!(error instanceof ActivityFailure)) throw error;
      const refusal = refusalIn(error);
      if (refusal !== null) {
        committer.refuse(refusal);
        return lost(null);
      }
      const mayBeTaken = once !== null && takenBack < TAKEN_BACK && error.cause instanceof TimeoutFailure;
      if (
        mayBeTaken &&
        patched("take back") &&
        (await isTakenBack(scope, committer, once, dispatchAttempt))
      ) {
        takenBack++;
        // The order that took it back is not performed.
        dispatchAttempt++;
        continue;
      }
      return lost(error.cause instanceof ApplicationFailure ? reasonIn(error.cause) : null);
    }
  }
}

/**
 * Whether an order that timed out was not begun: it was given to a worker that was cut off, frozen or killed before it
 * had it. Then nobody begins it any more.
 */
async function isTakenBack(
  scope: CancellationScope,
  committer: Committer,
  { conversationId, operationId }: Once,
  dispatchAttempt: number,
): Promise<boolean> {
  const { restarts } = committer;
  const claim = { operationId, dispatchAttempt: dispatchAttempt + 1, by: uuid4(), restarts };
  try {
    return await scope.run(async () => {
      // The row waits for the operation from here on.
      await committer.flush();
      return takeBack({ conversationId, claim });
    });
  } catch (error) {
    if (isCancellation(error)) return false;
    throw error;
  }
}

/**
 * A request that was lost with its worker is repeated. A request that the activity itself could not make would fail
 * again.
 */
function requestLost(requestId: string, problem: string | null): RequestEvent {
  if (problem === null) return { kind: "llm_lost", requestId };
  const message = `The request could not be made: ${problem}`;
  return {
    kind: "llm_failed",
    requestId,
    errorKind: "unknown",
    message,
    retryable: false,
    retryAfterMs: null,
  };
}

function interrupted(operationId: string): ToolEvent {
  return { kind: "tool_completed", operationId, status: "interrupted", output: [], durationMs: 0 };
}

function nothingIfCancelled(error: unknown): null {
  if (isCancellation(error)) return null;
  throw error;
}
