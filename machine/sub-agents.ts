/**
 * Owns: how a parent handles the outcomes of its sub-agents, and how a sub-agent begins (REQ-BED-008, 009, 018).
 * Not here: how a sub-agent ends itself (run.ts), the bookkeeping (children.ts).
 */
import { aggregate, runOf, spawnFreed, tellFinished, withOutcome } from "./children.ts";
import type { SubAgentOutcome } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import { advance, answerCall } from "./round.ts";
import { requestLlm } from "./run.ts";
import { onSubAgentsStopped } from "./cancel.ts";

/** The first and only message of a sub-agent; it comes from the parent's model. */
export function onTaskGiven(draft: Draft, messageId: string, task: string): void {
  if (!draft.context.isSubAgent || draft.state.kind !== "idle") return;
  draft.set({
    run: { cycleId: messageId, requests: 0, truncations: 0, reminders: 0, upgradeDenied: false },
    hasMessages: true,
  });
  draft.append(
    {
      type: "user",
      actor: "llm_agent",
      content: [{ type: "text", text: task }],
      display: { kind: "direct" },
    },
    messageId,
  );
  requestLlm(draft, 1);
}

/** REQ-BED-008: the last outcome ends the wait, whether it is a success or a failure. */
export function onSubAgentFinished(draft: Draft, id: string, outcome: SubAgentOutcome): void {
  const state = draft.state;
  if (!("pending" in state)) return;
  const children = withOutcome(state, id, outcome);
  if (children === null) return;
  tellFinished(draft, state, children);
  if (children.pending.length > 0) {
    draft.setState({ ...state, ...children });
    if (state.kind === "awaiting_sub_agents") spawnFreed(draft, state, children);
    return;
  }
  if (state.kind === "cancelling") return onSubAgentsStopped(draft, { ...state, ...children });
  const answer = answerCall(draft, state.toolCall, "completed", aggregate(children), runOf(children));
  const completed = [...state.completed, answer];
  advance(draft, { remaining: state.remaining, completed });
}
