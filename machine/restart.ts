/**
 * Owns: what a restart of the whole system does to a conversation (REQ-BED-007; docs/machine.md, "Restart"). The policy
 * `idle` puts working conversations to idle with synthetic results; `resume` continues them. The death of a worker
 * alone is not a restart.
 */
import { aggregate, fail, running, runOf, tellFinished } from "./children.ts";
import { requestContinuation } from "./continuation.ts";
import type { Children, StateOf } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import { answerCancelled } from "./cancel.ts";
import { onLost } from "./failure.ts";
import { hold } from "./queue.ts";
import { advance, answerCall, skipAll } from "./round.ts";
import { failSubAgent, interruptRun, requestLlm } from "./run.ts";
import { toModel, toPerson } from "./wording.ts";

export type RestartPolicy = "idle" | "resume";

export function onRestarted(draft: Draft, policy: RestartPolicy): void {
  const { state } = draft;
  switch (state.kind) {
    case "idle":
    case "error":
      return hold(draft, "restart");
    case "context_exhausted":
    case "completed":
    case "failed":
    case "awaiting_mode_approval":
      return;
    case "awaiting_llm":
      return policy === "resume" ? requestLlm(draft, 1) : interrupt(draft);
    case "llm_requesting":
      if (policy === "resume") return resumeRequest(draft, state);
      draft.stop({ kind: "abort_request", requestId: state.requestId });
      return interrupt(draft);
    case "tool_executing":
      return interruptTool(draft, state, policy);
    case "awaiting_sub_agents":
      return policy === "resume" ? undefined : interruptSubAgents(draft, state);
    case "cancelling":
      return finishCancel(draft, state);
    case "awaiting_continuation":
      draft.stop({ kind: "abort_request", requestId: state.requestId });
      return requestContinuation(draft, state, state.attempt);
  }
}

/** A retry that is scheduled stays scheduled: its timer is durable. */
function resumeRequest(draft: Draft, state: StateOf<"llm_requesting">): void {
  if (state.retry !== null) return;
  draft.stop({ kind: "abort_request", requestId: state.requestId });
  onLost(draft, state);
}

function interruptTool(draft: Draft, state: StateOf<"tool_executing">, policy: RestartPolicy): void {
  draft.stop({ kind: "abort_tool", operationId: state.operationId });
  const answer = answerCall(draft, state.current, "interrupted", toModel.interrupted);
  if (policy === "resume") {
    return advance(draft, { remaining: state.remaining, completed: [...state.completed, answer] });
  }
  skipAll(draft, state.remaining, toModel.skippedByRestart);
  interrupt(draft);
}

function interruptSubAgents(draft: Draft, state: StateOf<"awaiting_sub_agents">): void {
  const children = failChildren(draft, state);
  answerCall(draft, state.toolCall, "interrupted", aggregate(children), runOf(children));
  skipAll(draft, state.remaining, toModel.skippedByRestart);
  interrupt(draft);
}

/** The processes died with the system, so a cancel that was under way is complete. */
function finishCancel(draft: Draft, state: StateOf<"cancelling">): void {
  switch (state.stopping) {
    case "request":
      draft.stop({ kind: "abort_request", requestId: state.requestId });
      break;
    case "tool":
      draft.stop({ kind: "abort_tool", operationId: state.operationId });
      answerCancelled(draft, state.current, state, []);
      break;
    case "sub_agents": {
      const children = failChildren(draft, state);
      answerCancelled(draft, state.toolCall, state, aggregate(children), runOf(children));
      break;
    }
  }
  interrupt(draft);
}

/** Marks unfinished sub-agents as failed, and stops those that may still run. */
function failChildren(draft: Draft, state: Children): Children {
  for (const child of running(state.pending)) draft.stop({ kind: "cancel_sub_agent", id: child.id });
  const children = fail(state, state.pending, { error: toPerson.interrupted, errorKind: "interrupted" });
  tellFinished(draft, state, children);
  return children;
}

function interrupt(draft: Draft): void {
  if (draft.context.isSubAgent)
    return failSubAgent(draft, { error: toPerson.interrupted, errorKind: "interrupted" });
  draft.appendNote(toPerson.restarted);
  interruptRun(draft);
}
