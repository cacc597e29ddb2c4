/**
 * Owns: Stop (REQ-BED-005). If nothing is in flight, a cancel takes effect at once. Otherwise the state is `cancelling`
 * until everything in flight has ended; only then is the run over.
 */
import { aggregate, fail, running, runOf, tellFinished, waiting } from "./children.ts";
import { cancelContinuation } from "./continuation.ts";
import type {
  Cancelling,
  CancelledBy,
  QueueOnCancel,
  StateOf,
  SubAgentOutcome,
  ToolCall,
} from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { Block } from "./message.ts";
import { clearQueue, hold } from "./queue.ts";
import { answerCall, type CallRun, skipAll } from "./round.ts";
import { failSubAgent, finishRun } from "./run.ts";
import { toModel, toPerson } from "./wording.ts";

/** Never rejected and never an error: if there is nothing to cancel, nothing happens. */
export function onCancel(draft: Draft, by: CancelledBy, queue: QueueOnCancel): void {
  if (queue === "clear") clearQueue(draft);
  if (queue === "hold") hold(draft, "cancel");
  const { state, time: since } = draft;
  switch (state.kind) {
    case "llm_requesting":
      draft.stop({ kind: "abort_request", requestId: state.requestId });
      if (state.retry !== null) return endCancelled(draft, by);
      return draft.setState({
        kind: "cancelling",
        since,
        by,
        stopping: "request",
        requestId: state.requestId,
      });
    case "tool_executing": {
      const { current, operationId, remaining, completed } = state;
      draft.stop({ kind: "abort_tool", operationId });
      return draft.setState({
        kind: "cancelling",
        since,
        by,
        stopping: "tool",
        operationId,
        current,
        remaining,
        completed,
      });
    }
    case "awaiting_sub_agents":
      return cancelSubAgents(draft, state, by);
    case "awaiting_mode_approval":
      answerCancelled(draft, state.toolCall, { by, remaining: state.remaining }, []);
      return endCancelled(draft, by);
    case "awaiting_continuation":
      draft.stop({ kind: "abort_request", requestId: state.requestId });
      return cancelContinuation(draft, state);
    case "awaiting_llm":
      return endCancelled(draft, by);
    case "idle":
    case "cancelling":
    case "error":
    case "context_exhausted":
    case "completed":
    case "failed":
      return;
  }
}

/** The request has ended: by the abort, or by itself at the same moment. Nothing of it is kept. */
export function onRequestStopped(draft: Draft, state: Cancelling): void {
  endCancelled(draft, state.by);
}

/**
 * The tool's process tree is dead. Its output so far and the files that it changed are kept, and its status is
 * `cancelled` whatever the tool returned.
 */
export function onToolStopped(
  draft: Draft,
  state: Extract<Cancelling, { stopping: "tool" }>,
  output: readonly Block[],
  ran: CallRun,
): void {
  answerCancelled(draft, state.current, state, output, ran);
  endCancelled(draft, state.by);
}

/** Every sub-agent has reported. */
export function onSubAgentsStopped(
  draft: Draft,
  state: Extract<Cancelling, { stopping: "sub_agents" }>,
): void {
  answerCancelled(draft, state.toolCall, state, aggregate(state), runOf(state));
  endCancelled(draft, state.by);
}

/**
 * Answers the stopped call with its output and a note that it was stopped, and skips the calls after it: they never
 * ran.
 */
export function answerCancelled(
  draft: Draft,
  call: ToolCall,
  state: { readonly by: CancelledBy; readonly remaining: readonly ToolCall[] },
  output: readonly Block[],
  ran?: CallRun,
): void {
  const note: Block = { type: "text", text: toPerson.stoppedBy[state.by] };
  answerCall(draft, call, "cancelled", [...output, note], ran);
  skipAll(draft, state.remaining, toModel.skippedByCancel);
}

function cancelSubAgents(draft: Draft, state: StateOf<"awaiting_sub_agents">, by: CancelledBy): void {
  const { toolCall, remaining, completed } = state;
  const outcome: SubAgentOutcome = { error: toPerson.stoppedBy.parent, errorKind: "interrupted" };
  const children = fail(state, waiting(state.pending), outcome);
  tellFinished(draft, state, children);
  for (const child of running(state.pending)) draft.stop({ kind: "cancel_sub_agent", id: child.id });
  draft.setState({
    kind: "cancelling",
    since: draft.time,
    by,
    stopping: "sub_agents",
    toolCall,
    remaining,
    completed,
    ...children,
  });
}

function endCancelled(draft: Draft, by: CancelledBy): void {
  if (draft.context.isSubAgent) {
    failSubAgent(draft, { error: toPerson.stoppedBy[by], errorKind: "interrupted" });
  } else {
    finishRun(draft, "interrupted");
  }
}
