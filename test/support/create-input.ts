/** Owns: how tests open a conversation through the workflow's own interface, as the API does. */
import { WithStartWorkflowOperation } from "@temporalio/client";
import type { ServiceConfig } from "../../config.ts";
import type { Mode, Sandbox } from "../../machine/conversation.ts";
import { WORKFLOW_TASK_TIMEOUT_MS } from "../../protocol/timing.ts";
import * as contract from "../../protocol/workflow.ts";

type Place = {
  readonly config: Pick<ServiceConfig, "toolHost" | "model" | "taskQueue">;
  readonly cwd: string;
  /** As the host of the directory answers. */
  readonly sandbox: Sandbox;
};

export const NO_SANDBOX = { kind: "unavailable", reason: "Not in this test." } as const;

/** A conversation of a person. @param mode by default the API's: Restricted where the host can enforce it */
export function createInputFor(
  system: Place,
  id: string,
  mode: Mode = system.sandbox.kind === "available" ? "restricted" : "unrestricted",
): contract.CreateInput {
  return {
    config: {
      id,
      cwd: system.cwd,
      host: system.config.toolHost,
      model: system.config.model,
      scripted: false,
      sandbox: system.sandbox,
      initialMode: mode,
      parentId: null,
      continuedFrom: null,
      userInitiated: true,
    },
    title: null,
    inherited: null,
    task: null,
  };
}

/** Update-with-start, as the API does it. */
export function startOperation(
  system: Pick<Place, "config">,
  start: contract.ConversationStart,
): WithStartWorkflowOperation<(start: contract.ConversationStart) => Promise<unknown>> {
  return new WithStartWorkflowOperation(contract.CONVERSATION_WORKFLOW, {
    workflowId: start.conversationId,
    taskQueue: system.config.taskQueue,
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
    workflowIdConflictPolicy: "USE_EXISTING",
    args: [start],
  });
}
