/**
 * Owns: the bookkeeping of one `spawn_agents` call (REQ-BED-008): which sub-agents run, wait and have finished. The
 * number of `pending` and `finished` together is constant, and `pending` only shrinks. The first
 * MAX_PARALLEL_SUB_AGENTS of `pending` run.
 */
import { MAX_PARALLEL_SUB_AGENTS } from "./control-tools.ts";
import type { Children, GivenTask, Round, SubAgentOutcome, SubAgentTask, ToolCall } from "./conversation.ts";
import type { Draft } from "./draft.ts";
import type { Block } from "./message.ts";
import type { CallRun } from "./round.ts";
import { describeOutcome } from "./wording.ts";

/** Orders the sub-agents of a call and waits for them. */
export function spawnChildren(
  draft: Draft,
  toolCall: ToolCall,
  tasks: readonly GivenTask[],
  round: Round,
): void {
  const timeoutSeconds = draft.context.limits.subAgentTimeoutSeconds;
  const pending = tasks.map((task) => ({ id: draft.newId(), timeoutSeconds, ...task }));
  draft.setState({ kind: "awaiting_sub_agents", toolCall, pending, finished: [], all: pending, ...round });
  for (const child of running(pending)) spawn(draft, child);
}

/** The children with one more outcome; null if that child is not pending. */
export function withOutcome(children: Children, id: string, outcome: SubAgentOutcome): Children | null {
  if (!children.pending.some((child) => child.id === id)) return null;
  return {
    pending: children.pending.filter((child) => child.id !== id),
    finished: [...children.finished, { id, outcome }],
    all: children.all,
  };
}

/** Starts the sub-agents that have moved up into the running part of `pending`. */
export function spawnFreed(draft: Draft, before: Children, after: Children): void {
  const started = new Set(running(before.pending).map((child) => child.id));
  for (const child of running(after.pending)) if (!started.has(child.id)) spawn(draft, child);
}

export function running(pending: readonly SubAgentTask[]): readonly SubAgentTask[] {
  return pending.slice(0, MAX_PARALLEL_SUB_AGENTS);
}

export const waiting = (pending: readonly SubAgentTask[]): readonly SubAgentTask[] =>
  pending.slice(MAX_PARALLEL_SUB_AGENTS);

/** Records outcomes for children that will not report any more. */
export function fail(children: Children, ids: readonly SubAgentTask[], outcome: SubAgentOutcome): Children {
  // Callers pass a whole state: none of its other fields may be returned.
  const { pending, finished, all } = children;
  const before: Children = { pending, finished, all };
  return ids.reduce((rest, child) => withOutcome(rest, child.id, outcome) ?? rest, before);
}

export function tellFinished(draft: Draft, before: Children, after: Children): void {
  for (const finished of after.finished.slice(before.finished.length)) {
    draft.notify({ name: "subagent.finished", data: finished });
  }
}

/** The one result of the call: every task's outcome, in the order of the tasks. */
export function aggregate(children: Children): readonly Block[] {
  const outcomes = new Map(children.finished.map(({ id, outcome }) => [id, outcome]));
  const parts = children.all.flatMap((child, index) => {
    const outcome = outcomes.get(child.id);
    return outcome === undefined ? [] : [describeOutcome(index + 1, child.task, outcome)];
  });
  return [{ type: "text", text: parts.join("\n\n") }];
}

/** What is known of the call when its sub-agents have ended. */
export const runOf = ({ all }: Children): CallRun => ({ durationMs: 0, subAgents: all.map(({ id }) => id) });

function spawn(draft: Draft, subAgent: SubAgentTask): void {
  draft.notify({ name: "subagent.spawned", data: { id: subAgent.id, task: subAgent.task } });
  draft.start({ kind: "spawn_sub_agent", subAgent, mode: draft.conversation.mode });
}
