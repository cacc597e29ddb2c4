/**
 * Owns: the one entry to the machine (REQ-BED-001). This file, or the function that it calls, handles every event in
 * every state. It drops outcomes that the state does not wait for.
 */
import { onCancel, onRequestStopped, onToolStopped } from "./cancel.ts";
import { onContinued, onSummary, onTriggerContinuation } from "./continuation.ts";
import type { Context } from "./context.ts";
import type { Cancelling, Conversation, State, StateOf } from "./conversation.ts";
import { Draft, type Accepted } from "./draft.ts";
import type { ConversationEvent, Event } from "./event.ts";
import type { Charge } from "./message.ts";
import { askAgain, onFailure, onLost } from "./failure.ts";
import { onUserMessage } from "./messages.ts";
import { onDecision, onDowngrade } from "./modes.ts";
import { onRelease, onWithdraw } from "./queue.ts";
import type { Rejection } from "./rejection.ts";
import { onResponse, type Response } from "./response.ts";
import { onRestarted } from "./restart.ts";
import { advance, answerCall } from "./round.ts";
import { startNext } from "./run.ts";
import { onSubAgentFinished, onTaskGiven } from "./sub-agents.ts";
import { toModel } from "./wording.ts";

type ToolCompleted = Extract<ConversationEvent, { kind: "tool_completed" }>;

export type Transition =
  | Accepted
  /** The event has no effect in this state. */
  | { readonly kind: "ignored" }
  | { readonly kind: "rejected"; readonly rejection: Rejection };

/**
 * Returns the next conversation and its effects, or why the event is rejected. Pure and total: the same arguments give
 * the same answer; it never throws, reads no clock and draws no random number.
 */
export function transition(conversation: Conversation, context: Context, event: Event): Transition {
  const draft = new Draft(conversation, context, event.stamp);
  const rejection = apply(draft, event);
  if (rejection !== null) return { kind: "rejected", rejection };
  return draft.done() ?? { kind: "ignored" };
}

function apply(draft: Draft, event: Event): Rejection | null {
  const { state } = draft;
  charge(draft, event);
  switch (event.kind) {
    case "user_message":
      return onUserMessage(draft, event);
    case "withdraw_message":
      return onWithdraw(draft, event.messageId);
    case "user_decide_upgrade":
      return onDecision(draft, event);
    case "user_request_downgrade":
      return onDowngrade(draft, event.sandbox);
    case "user_trigger_continuation":
      return onTriggerContinuation(draft);
    case "user_cancel":
      onCancel(draft, event.by, event.queue);
      return null;
    case "user_release_queue":
      return onRelease(draft);
    case "next_run_due":
      startNext(draft);
      return null;
    case "llm_response":
      if (awaitsRequest(state, event.requestId)) onAnswer(draft, state, event);
      else if (stopsRequest(state, event.requestId)) onRequestStopped(draft, state);
      return null;
    case "llm_failed":
      if (awaitsRequest(state, event.requestId)) onFailure(draft, state, event);
      else if (stopsRequest(state, event.requestId)) onRequestStopped(draft, state);
      return null;
    case "llm_lost":
      if (awaitsRequest(state, event.requestId)) onLost(draft, state);
      else if (stopsRequest(state, event.requestId)) onRequestStopped(draft, state);
      return null;
    case "retry_due":
      if (awaitsRetry(state, event.requestId)) askAgain(draft, state);
      return null;
    case "tool_completed":
      onToolCompleted(draft, event);
      return null;
    case "task_given":
      onTaskGiven(draft, event.messageId, event.task);
      return null;
    case "sub_agent_finished":
      onSubAgentFinished(draft, event.id, event.outcome);
      return null;
    case "continued":
      onContinued(draft, event);
      return null;
    case "noted":
      draft.appendNote(event.text);
      return null;
    case "restarted":
      onRestarted(draft, event.policy);
      return null;
  }
}

/**
 * Charges for a request that has ended, in whichever way. The state waits for each request once, so each is charged
 * once.
 */
function charge(draft: Draft, event: Event): void {
  if (event.kind !== "llm_response" && event.kind !== "llm_failed" && event.kind !== "llm_lost") return;
  const { state } = draft;
  if (!awaitsRequest(state, event.requestId) && !stopsRequest(state, event.requestId)) return;
  const charged = chargeIn(event);
  if (charged !== null) draft.charge(charged);
}

type Ended = Extract<Event, { kind: "llm_response" | "llm_failed" | "llm_lost" }>;

function chargeIn(event: Ended): Charge | null {
  if (event.charge !== undefined) return event.charge;
  return event.kind === "llm_response" ? { ...event.usage, nanodollars: null } : null;
}

type Requesting = StateOf<"llm_requesting"> | StateOf<"awaiting_continuation">;
type StoppingRequest = Extract<Cancelling, { stopping: "request" }>;

const concerns = (state: State, requestId: string): state is Requesting | StoppingRequest =>
  "requestId" in state && state.requestId === requestId;

const awaitsRequest = (state: State, requestId: string): state is Requesting =>
  concerns(state, requestId) && state.kind !== "cancelling" && state.retry === null;

const awaitsRetry = (state: State, requestId: string): state is Requesting =>
  concerns(state, requestId) && state.kind !== "cancelling" && state.retry !== null;

const stopsRequest = (state: State, requestId: string): state is StoppingRequest =>
  concerns(state, requestId) && state.kind === "cancelling";

function onAnswer(draft: Draft, state: Requesting, response: Response): void {
  if (state.kind === "llm_requesting") onResponse(draft, response);
  else onSummary(draft, state, response);
}

function onToolCompleted(draft: Draft, event: ToolCompleted): void {
  const { state } = draft;
  if (!("operationId" in state) || state.operationId !== event.operationId) return;
  if (state.kind === "cancelling") return onToolStopped(draft, state, event.output, event);
  const output = event.status === "interrupted" ? toModel.interrupted : event.output;
  const answer = answerCall(draft, state.current, event.status, output, event);
  advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
}
