/**
 * Owns: sub-agents as child workflows of the same definition (REQ-BED-008; docs/sub-agents.md). A parent cancels a
 * child by signal, so that the child's own machine ends it. The child's end becomes the parent's event, whatever
 * happened to the child's workflow.
 */
import {
  CancellationScope,
  type ChildWorkflowHandle,
  executeChild,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  sleep,
  startChild,
  type Workflow,
} from "@temporalio/workflow";
import type { Mode, Sandbox, SubAgentOutcome, SubAgentTask } from "../machine/conversation.ts";
import { toModel } from "../machine/wording.ts";
import type { ConversationMetadata } from "../protocol/activities.ts";
import { WORKFLOW_TASK_TIMEOUT_MS } from "../protocol/timing.ts";
import { shownTitle, titleOf } from "../protocol/title.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import {
  cancelSignal,
  CONVERSATION_WORKFLOW,
  type ConversationStart,
  type CreateInput,
} from "../protocol/workflow.ts";
import { sandboxOf } from "./activities.ts";
import { attributesOf } from "./visibility.ts";

type SubAgentWorkflow = (start: ConversationStart) => Promise<SubAgentOutcome | null>;

type Handle = ChildWorkflowHandle<SubAgentWorkflow>;

const NOT_STARTED: SubAgentOutcome = {
  error: "Stopped before it had begun.",
  errorKind: "interrupted",
};
const UNENDING: SubAgentOutcome = { error: "Its workflow could not be ended.", errorKind: "interrupted" };
const unrestrainable = (reason: string): SubAgentOutcome => ({
  error: `Not started: the host could not find out whether it can enforce Restricted mode. ${reason}`,
  errorKind: "unknown",
});
const GONE: SubAgentOutcome = { error: "The sub-agent was removed.", errorKind: "interrupted" };

/** `subAgentContext`: the context of sub-agents that have the parent's model. */
type Parent = Pick<ConversationMetadata, "config" | "subAgentContext" | "hidesTitle">;

const FIRST_PAUSE_MS = 100;
/** All pauses together take half a minute. */
const LAST_PAUSE_MS = 16_000;

export class SubAgents {
  readonly #parent: Parent;
  /** The sub-agents that were ordered here and have not ended; null before the workflow has started. */
  readonly #handles = new Map<string, Handle | null>();
  readonly #stopped = new Set<string>();
  #asking: Promise<Sandbox> | null = null;

  constructor(parent: Parent) {
    this.#parent = parent;
  }

  /**
   * Runs a sub-agent to its end and always returns an outcome. If its workflow was ended from outside, the outcome
   * comes from its row.
   *
   * @param committed resolves when the state that waits for it is in Postgres.
   */
  async run(task: SubAgentTask, mode: Mode, committed: Promise<void>): Promise<SubAgentOutcome> {
    const { id } = task;
    this.#handles.set(id, null);
    try {
      await committed;
      const sandbox = await this.#sandbox();
      if (this.#stopped.has(id)) return NOT_STARTED;
      if (sandbox.kind === "unknown") return unrestrainable(sandbox.reason);
      const createInput = createInputOf(task, this.#parent, { sandbox, parentMode: mode });
      // The title that its first message, the task, gives to the sub-agent.
      const title = shownTitle(titleOf(task.task));
      const handle = await startChild<SubAgentWorkflow>(CONVERSATION_WORKFLOW, {
        ...childOptions(id),
        args: [{ conversationId: id, createInput }],
        typedSearchAttributes: attributesOf(
          createInput.config,
          this.#parent.hidesTitle === true ? null : title,
        ),
        staticSummary: `sub-agent: ${title}`,
      });
      this.#handles.set(id, handle);
      if (this.#stopped.has(id)) await stop(handle, "parent");
      return (await withTimeLimit(handle, task.timeoutSeconds)) ?? GONE;
    } catch {
      return await endFromRow(id);
    } finally {
      this.#handles.delete(id);
      this.#stopped.delete(id);
    }
  }

  /** One question to the host for all sub-agents that start together. */
  #sandbox(): Promise<Sandbox> {
    this.#asking ??= sandboxOf(this.#parent.config.host).finally(() => (this.#asking = null));
    return this.#asking;
  }

  /**
   * Asks a sub-agent to stop; `run` returns when it has stopped. A sub-agent that is unknown here (after a divergence)
   * is ended from its row.
   */
  async cancel(id: string): Promise<void> {
    const handle = this.#handles.get(id);
    if (handle === undefined) {
      await stop(getExternalWorkflowHandle(id), "parent").catch(() => endFromRow(id));
      return;
    }
    this.#stopped.add(id);
    // If the sub-agent has ended meanwhile, `run` returns its outcome.
    if (handle !== null) await stop(handle, "parent").catch(() => undefined);
  }
}

/** The common part of the handles of a child and of any other workflow. */
type Signalled = Pick<ChildWorkflowHandle<Workflow>, "signal">;

const stop = (handle: Signalled, by: "parent" | "timeout"): Promise<void> =>
  handle.signal(cancelSignal, { by });

/** The outcome of a sub-agent, which is stopped when its time is over; then the outcome says so. */
async function withTimeLimit(handle: Handle, seconds: number): Promise<SubAgentOutcome | null> {
  const limit = new CancellationScope();
  const time = { isOver: false };
  void limit
    .run(() => sleep(seconds * 1_000, { summary: "time limit of a sub-agent" }))
    .then(() => {
      time.isOver = true;
      return stop(handle, "timeout");
    })
    // The sub-agent has ended, and the time limit with it.
    .catch(() => undefined);
  try {
    const outcome = authenticated(await handle.result());
    return time.isOver && outcome !== null && "error" in outcome
      ? { ...outcome, error: toModel.timedOut(seconds) }
      : outcome;
  } finally {
    limit.cancel();
  }
}

/**
 * A workflow that ended without an answer (an operator terminated it, Temporal's database was lost) leaves its row in
 * any state. Started anew without a task, it ends itself as after a restart, or returns how it had ended. If it still
 * runs (its parent was reset), it gets a signal to stop first.
 */
async function endFromRow(id: string): Promise<SubAgentOutcome> {
  for (let pause = FIRST_PAUSE_MS; pause <= LAST_PAUSE_MS; pause *= 2) {
    try {
      const outcome = await executeChild<SubAgentWorkflow>(CONVERSATION_WORKFLOW, {
        ...childOptions(id),
        args: [{ conversationId: id }],
        staticSummary: "sub-agent, ended from outside",
      });
      return authenticated(outcome) ?? GONE;
    } catch (error) {
      if (isCancellation(error)) return GONE;
      await stop(getExternalWorkflowHandle(id), "parent").catch(() => undefined);
      await sleep(pause, { summary: "until the sub-agent has ended" });
    }
  }
  return UNENDING;
}

/** @throws if the outcome does not come from one of our workers. */
function authenticated(outcome: SubAgentOutcome | null): SubAgentOutcome | null {
  if (isUnauthenticated(outcome)) throw new Error("The outcome does not come from our workers.");
  return outcome;
}

const childOptions = (workflowId: string) => ({
  workflowId,
  workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
});

/**
 * REQ-BED-018: Restricted whenever the sandbox works, whatever the parent's mode. Without a sandbox a sub-agent has its
 * parent's mode: a Restricted parent on a host that has lost its sandbox must not get rights by a sub-agent.
 */
function createInputOf(
  task: SubAgentTask,
  { config, subAgentContext, hidesTitle = false }: Parent,
  { sandbox, parentMode }: { readonly sandbox: Sandbox; readonly parentMode: Mode },
): CreateInput {
  const model = task.model ?? config.model;
  return {
    config: {
      ...config,
      id: task.id,
      model,
      sandbox,
      initialMode: sandbox.kind === "available" ? "restricted" : parentMode,
      parentId: config.id,
      continuedFrom: null,
      userInitiated: false,
    },
    title: null,
    inherited: null,
    task: { messageId: `task-${task.id}`, text: task.task },
    ...(model === config.model ? { context: subAgentContext } : {}),
    ...(hidesTitle ? { hidesTitle } : {}),
  };
}
