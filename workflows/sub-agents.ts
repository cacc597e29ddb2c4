/**
 * Owns: sub-agents as child workflows of the same definition (REQ-BED-008; docs/sub-agents.md). A child is cancelled by
 * signal, so that its own machine ends it, and its end is the parent's event whatever became of its workflow.
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
import type { Context } from "../machine/context.ts";
import type { SubAgentOutcome, SubAgentTask } from "../machine/conversation.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import { WORKFLOW_TASK_TIMEOUT_MS } from "../protocol/timing.ts";
import { isUnsigned } from "../protocol/unsigned.ts";
import {
  cancelSignal,
  CONVERSATION_WORKFLOW,
  type ConversationStart,
  type CreateInput,
} from "../protocol/workflow.ts";
import { attributesOf } from "./visibility.ts";

type SubAgentWorkflow = (start: ConversationStart) => Promise<SubAgentOutcome | null>;

type Handle = ChildWorkflowHandle<SubAgentWorkflow>;

const NOT_STARTED: SubAgentOutcome = {
  error: "Stopped before it had begun.",
  errorKind: "interrupted",
};
const UNENDING: SubAgentOutcome = { error: "Its workflow could not be ended.", errorKind: "interrupted" };
const GONE: SubAgentOutcome = { error: "The sub-agent was removed.", errorKind: "interrupted" };

/** `subAgentContext`: of those that have its model. */
type Parent = { readonly config: ConversationConfig; readonly subAgentContext: Context };

const FIRST_PAUSE_MS = 100;
/** Half a minute in all. */
const LAST_PAUSE_MS = 16_000;

export class SubAgents {
  readonly #parent: Parent;
  /** Those that were ordered here and have not ended; null before its workflow has started. */
  readonly #handles = new Map<string, Handle | null>();
  readonly #stopped = new Set<string>();

  constructor(parent: Parent) {
    this.#parent = parent;
  }

  /**
   * Runs one to its end. Always answers: one whose workflow ended from outside has ended as its row says.
   *
   * @param committed resolves when the state that waits for it is in Postgres.
   */
  async run(task: SubAgentTask, committed: Promise<void>): Promise<SubAgentOutcome> {
    const { id } = task;
    this.#handles.set(id, null);
    try {
      await committed;
      if (this.#stopped.has(id)) return NOT_STARTED;
      const createInput = createInputOf(task, this.#parent);
      const handle = await startChild<SubAgentWorkflow>(CONVERSATION_WORKFLOW, {
        ...childOptions(id),
        args: [{ conversationId: id, createInput }],
        typedSearchAttributes: attributesOf(createInput),
        staticSummary: `sub-agent: ${oneLine(task.task)}`,
      });
      this.#handles.set(id, handle);
      if (this.#stopped.has(id)) await stop(handle, "parent");
      return signed(await withTimeLimit(handle, task.timeoutSeconds)) ?? GONE;
    } catch {
      return await endFromRow(id);
    } finally {
      this.#handles.delete(id);
      this.#stopped.delete(id);
    }
  }

  /** Asks one to stop; `run` answers when it has. One that nobody here knows (after a divergence) is ended by its row. */
  async cancel(id: string): Promise<void> {
    const handle = this.#handles.get(id);
    if (handle === undefined) {
      await stop(getExternalWorkflowHandle(id), "parent").catch(() => endFromRow(id));
      return;
    }
    this.#stopped.add(id);
    // One that has ended meanwhile answers by its end.
    if (handle !== null) await stop(handle, "parent").catch(() => undefined);
  }
}

/** What a handle of a child and one of any other workflow have in common. */
type Signalled = Pick<ChildWorkflowHandle<Workflow>, "signal">;

const stop = (handle: Signalled, by: "parent" | "timeout"): Promise<void> =>
  handle.signal(cancelSignal, { by });

async function withTimeLimit(handle: Handle, seconds: number | undefined): Promise<SubAgentOutcome | null> {
  if (seconds === undefined) return handle.result();
  const limit = new CancellationScope();
  void limit
    .run(() => sleep(seconds * 1_000, { summary: "time limit of a sub-agent" }))
    .then(() => stop(handle, "timeout"))
    // It has ended, and with it the limit.
    .catch(() => undefined);
  try {
    return await handle.result();
  } finally {
    limit.cancel();
  }
}

/**
 * A workflow that ended without an answer (an operator terminated it, Temporal's database was lost) leaves a row in
 * whatever state it was. Started anew without a task, it ends itself as after a restart, or says how it had ended.
 * One that still runs (for a parent that was reset) is told to stop first.
 */
async function endFromRow(id: string): Promise<SubAgentOutcome> {
  for (let pause = FIRST_PAUSE_MS; pause <= LAST_PAUSE_MS; pause *= 2) {
    try {
      const outcome = await executeChild<SubAgentWorkflow>(CONVERSATION_WORKFLOW, {
        ...childOptions(id),
        args: [{ conversationId: id }],
        staticSummary: "sub-agent, ended from outside",
      });
      return signed(outcome) ?? GONE;
    } catch (error) {
      if (isCancellation(error)) return GONE;
      await stop(getExternalWorkflowHandle(id), "parent").catch(() => undefined);
      await sleep(pause, { summary: "until the sub-agent has ended" });
    }
  }
  return UNENDING;
}

/** @throws where it is not one of our workers that has ended it. */
function signed(outcome: SubAgentOutcome | null): SubAgentOutcome | null {
  if (isUnsigned(outcome)) throw new Error("The outcome is not signed.");
  return outcome;
}

const childOptions = (workflowId: string) => ({
  workflowId,
  workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
});

/** REQ-BED-018: Restricted whenever the sandbox works, whatever the parent's mode. */
function createInputOf(task: SubAgentTask, { config, subAgentContext }: Parent): CreateInput {
  const model = task.model ?? config.model;
  return {
    config: {
      ...config,
      id: task.id,
      model,
      parentId: config.id,
      continuedFrom: null,
      userInitiated: false,
    },
    mode: config.sandbox.available ? "restricted" : "unrestricted",
    title: null,
    seed: null,
    task: { messageId: `task-${task.id}`, text: task.task },
    ...(model === config.model ? { context: subAgentContext } : {}),
  };
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").slice(0, 100);
