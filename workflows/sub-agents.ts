/**
 * Owns: a sub-agent as a child workflow of the same definition, and how its end becomes the parent's event
 * (REQ-BED-008). A child is cancelled by signal, so that its own machine ends it.
 */
import {
  CancellationScope,
  executeChild,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
} from "@temporalio/workflow";
import type { SubAgentOutcome, SubAgentTask } from "../machine/conversation.ts";
import type { ConversationEvent } from "../machine/event.ts";
import type { Profile } from "../machine/profile.ts";
import { cancelSignal, CONVERSATION_WORKFLOW, type Opening, WORKFLOW_TASK_TIMEOUT } from "./contract.ts";

/** Runs the child to its end. It always answers: a child that was terminated or never started has failed. */
export async function runSubAgent(
  task: SubAgentTask,
  parent: Profile,
  scope: CancellationScope,
): Promise<ConversationEvent> {
  return { kind: "sub_agent_finished", id: task.id, outcome: await scope.run(() => outcomeOf(task, parent)) };
}

/** Does nothing for a child that has ended already. */
export async function cancelSubAgent(id: string): Promise<void> {
  try {
    await getExternalWorkflowHandle(id).signal(cancelSignal, {});
  } catch (error) {
    if (isCancellation(error)) throw error;
  }
}

async function outcomeOf(task: SubAgentTask, parent: Profile): Promise<SubAgentOutcome> {
  try {
    const outcome = (await executeChild(CONVERSATION_WORKFLOW, {
      workflowId: task.id,
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      args: [{ conversationId: task.id, opening: openingOf(task, parent) }],
      staticSummary: `sub-agent: ${task.task.slice(0, 100)}`,
    })) as SubAgentOutcome | null;
    return outcome ?? { error: "The sub-agent was removed.", errorKind: "interrupted" };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { error: `The sub-agent's workflow ended: ${message}`, errorKind: "interrupted" };
  }
}

/** REQ-BED-018: Restricted whenever the sandbox works, whatever the parent's mode. */
function openingOf(task: SubAgentTask, parent: Profile): Opening {
  return {
    profile: {
      ...parent,
      id: task.id,
      model: task.model ?? parent.model,
      parentId: parent.id,
      continuedFrom: null,
      userInitiated: false,
    },
    mode: parent.sandbox.available ? "restricted" : "unrestricted",
    title: null,
    seed: null,
    task: { messageId: `task-${task.id}`, text: task.task },
  };
}
