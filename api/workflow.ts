/**
 * Owns: everything that the API asks of Temporal: updates of conversations, and short activities on the tool host. The
 * only file in api/ that uses Temporal's client, beside worker-versions.ts.
 * Not here: the names and inputs of the updates (protocol/workflow.ts), and what they do.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  ActivityExecutionFailedError,
  Client,
  Connection,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
  ServiceError,
  WithStartWorkflowOperation,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from "@temporalio/client";
import { ApplicationFailure, TimeoutFailure, type UpdateDefinition } from "@temporalio/common";
import type { HostActivities } from "../protocol/activities.ts";
import type { Sandbox } from "../machine/conversation.ts";
import { plainTitle } from "../protocol/title.ts";
import { dataConverterOf } from "../protocol/payload-encryption.ts";
import {
  HOST_DEADLINE_MS,
  HOST_RUN_TIMEOUT_MS,
  HOST_START_TIMEOUT_MS,
  UPDATE_DEADLINE_MS,
  WORKFLOW_TASK_TIMEOUT_MS,
} from "../protocol/timing.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import {
  CONVERSATION_WORKFLOW,
  toolsQueue,
  openUpdate,
  renamedSignal,
  type ConversationStart,
  type CreateInput,
  type UpdateRejection,
} from "../protocol/workflow.ts";
import { type Problem, unavailable } from "./problem.ts";
import { rejectionProblem } from "./rejection.ts";
import { Sandboxes } from "./sandboxes.ts";
import { endAbandoned, whyNoWorker } from "./worker-versions.ts";

type CheckedDirectory = Awaited<ReturnType<HostActivities["checkDirectory"]>>;

/** A component as a readiness report names it, and what is wrong with it. */
export type Missing = {
  readonly name: "postgres" | "migration" | "temporal" | "worker";
  readonly why: string;
};

/** All calls reject with a Problem: `unavailable`, or the code of a rejection. */
export type Workflows = {
  /** Makes a conversation, its first commit included; false when one with that id exists. */
  open(conversationId: string, createInput: CreateInput): Promise<boolean>;
  /**
   * Sends an update to a conversation's workflow. If the workflow does not run, this starts it from its row: it was
   * archived, closed itself, or was lost (docs/architecture.md, rule 10).
   *
   * @param exists rejects when there is no such conversation; called when its workflow did not answer.
   */
  update<Ret, Args extends unknown[]>(
    conversationId: string,
    definition: UpdateDefinition<Ret, Args>,
    args: Args,
    exists?: () => Promise<void>,
  ): Promise<Ret>;
  /**
   * Shows operators a new title, soon. Never rejects, and waits for nothing: a workflow that does not run shows the title
   * with its next run, which reads the row.
   *
   * @param event the number of the event that tells of it.
   */
  showTitle(conversationId: string, title: string, event: number): void;
  /** The support for Restricted mode on `host`. May be some seconds old. */
  sandboxOf(host: string): Promise<Sandbox>;
  /** The last known support, returned soon whatever is down; null: nothing is known. Never rejects. */
  lastSandboxOf(host: string): Promise<Sandbox | null>;
  checkDirectory(host: string, cwd: string): Promise<CheckedDirectory>;
  listDirectories(host: string, path: string): Promise<readonly string[]>;
  /** The components without which no update is answered. */
  missing(): Promise<readonly Missing[]>;
  close(): Promise<void>;
};

/** Milliseconds. */
const PROBE_DEADLINE_MS = 2_000;
/** How often an update is sent until its workflow is found running. Each further try fails only by another race. */
const ATTEMPTS = 5;
/**
 * Milliseconds. While a workflow continues as new, it answers for some ten milliseconds that its resources are
 * exhausted. By default the client takes that for a limit of the server, and retries after 1.7 s. Each further pause is
 * 1.7 times longer; an unreachable server is reported after about 0.8 s, while the client still waits.
 */
const FIRST_RETRY_MS = 8;
const CALLS = 8;
/** Milliseconds for which a new title is sent again to a server that does not answer, and between two tries. */
const TITLE_WITHIN_MS = 60_000;
const TITLE_PAUSE_MS = 1_000;
/** Milliseconds without an answer after which the API looks whether there is still a worker that could give it. */
const LOOK_FOR_WORKER_MS = 2_000;

export type TemporalOptions = {
  readonly address: string;
  readonly namespace: string;
  /** Where workers poll for conversations. */
  readonly taskQueue: string;
  /** The first encrypts, all decrypt; none: nothing is encrypted. */
  readonly payloadKeys: readonly Uint8Array[];
};

/** Connects on first use, and reconnects by itself; does not fail when the server is down. */
export function connectWorkflows({ address, namespace, taskQueue, payloadKeys }: TemporalOptions): Workflows {
  const retries = defaultGrpcRetryOptions({ maxAttempts: CALLS, initialIntervalMs: () => FIRST_RETRY_MS });
  const closing = new AbortController();
  const mayRetry: typeof retries.retryableDecider = (attempt, status) =>
    !closing.signal.aborted && retries.retryableDecider(attempt, status);
  const connection = Connection.lazy({
    address,
    connectTimeout: PROBE_DEADLINE_MS,
    // Reconnects within a second when the server is back; gRPC's own backoff goes up to two minutes.
    channelArgs: { "grpc.initial_reconnect_backoff_ms": 100, "grpc.max_reconnect_backoff_ms": 1_000 },
    interceptors: [makeGrpcRetryInterceptor({ ...retries, retryableDecider: mayRetry })],
  });
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(payloadKeys) });

  const queue = { namespace, taskQueue };

  const startOf = (start: ConversationStart, workflowIdConflictPolicy: "FAIL" | "USE_EXISTING") => {
    const title = plainTitle(start.createInput?.title ?? null);
    return new WithStartWorkflowOperation(CONVERSATION_WORKFLOW, {
      workflowId: start.conversationId,
      workflowIdConflictPolicy,
      ...(title === null ? {} : { staticSummary: title }),
      taskQueue,
      workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT_MS,
      args: [start],
    });
  };

  const open: Workflows["open"] = async (conversationId, createInput) => {
    // If two calls race, the second must not get the conversation that the first has made.
    const startWorkflowOperation = startOf({ conversationId, createInput }, "FAIL");
    try {
      const opened = await client.withDeadline(Date.now() + UPDATE_DEADLINE_MS, () =>
        client.workflow.executeUpdateWithStart(openUpdate, { startWorkflowOperation }),
      );
      return authenticated(opened).created;
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
      // This call has started the workflow, so the workflow has this call's create input.
      if (wasOverlooked(error)) return (await update(conversationId, openUpdate, [])).created;
      throw asProblem(error, conversationId);
    }
  };

  async function update<Ret, Args extends unknown[]>(
    conversationId: string,
    definition: UpdateDefinition<Ret, Args>,
    args: Args,
    exists: () => Promise<void> = () => Promise.resolve(),
  ): Promise<Ret> {
    // All tries are one update.
    const updateId = randomUUID();
    const ask = (attempt: number): Promise<Ret> => {
      const options = { args, updateId };
      if (attempt === 1) {
        const handle = client.workflow.getHandle(conversationId);
        // The SDK's types distinguish updates with arguments from those without; at run time there is no difference.
        return handle.executeUpdate<Ret, [unknown]>(
          definition.name,
          options as unknown as { args: [unknown]; updateId: string },
        );
      }
      const startWorkflowOperation = startOf({ conversationId }, "USE_EXISTING");
      return client.workflow.executeUpdateWithStart(definition, { ...options, startWorkflowOperation });
    };
    const deadline = Date.now() + UPDATE_DEADLINE_MS;
    // A run that is terminated answers the update at once, and the next try starts the conversation from its row.
    const look = setTimeout(() => {
      const end = () => endAbandoned(client, queue, conversationId);
      void client.withDeadline(deadline, end).catch(() => undefined);
    }, LOOK_FOR_WORKER_MS);
    const answered = client.withDeadline(deadline, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return authenticated(await ask(attempt));
        } catch (error) {
          if (attempt === 1) await exists();
          if (attempt < ATTEMPTS && (isClosed(error) || wasOverlooked(error))) continue;
          throw asProblem(error, conversationId);
        }
      }
    });
    return answered.finally(() => clearTimeout(look));
  }

  const onHost = async <T>(host: string, activity: keyof HostActivities, args: unknown[]): Promise<T> => {
    try {
      const answer = await client.withDeadline(Date.now() + HOST_DEADLINE_MS, () =>
        client.activity.execute<T>(activity, {
          id: `${activity}:${randomUUID()}`,
          taskQueue: toolsQueue(host),
          args,
          scheduleToStartTimeout: HOST_START_TIMEOUT_MS,
          startToCloseTimeout: HOST_RUN_TIMEOUT_MS,
          retry: { maximumAttempts: 1 },
        }),
      );
      return authenticated(answer);
    } catch (error) {
      if (error instanceof ActivityExecutionFailedError && error.cause instanceof TimeoutFailure) {
        throw unavailable(`No worker answers for the tools of ${host}.`);
      }
      throw asProblem(error, null);
    }
  };

  const titlesToShow = new Set<Promise<void>>();
  const sendTitle = async (conversationId: string, title: string, event: number): Promise<void> => {
    const deadline = performance.now() + TITLE_WITHIN_MS;
    while (performance.now() < deadline && !closing.signal.aborted) {
      try {
        await client.withDeadline(Date.now() + PROBE_DEADLINE_MS, () =>
          client.workflow.getHandle(conversationId).signal(renamedSignal, { title, event }),
        );
        return;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return;
      }
      await pause(TITLE_PAUSE_MS, null, { ref: false, signal: closing.signal }).catch(() => null);
    }
  };

  type Described = Awaited<ReturnType<HostActivities["describeHost"]>>;
  const sandboxes = new Sandboxes(
    async (host) => (await onHost<Described>(host, "describeHost", [{ host }])).sandbox,
  );

  return {
    open,
    update,
    showTitle(conversationId, title, event) {
      const sent = sendTitle(conversationId, title, event).finally(() => titlesToShow.delete(sent));
      titlesToShow.add(sent);
    },
    sandboxOf: (host) => sandboxes.of(host),
    lastSandboxOf: (host) => sandboxes.lastOf(host),
    checkDirectory: (host, cwd) => onHost<CheckedDirectory>(host, "checkDirectory", [{ cwd }]),
    async listDirectories(host, path) {
      type Listed = Awaited<ReturnType<HostActivities["listDirectories"]>>;
      return (await onHost<Listed>(host, "listDirectories", [{ path }])).directories;
    },
    async missing() {
      try {
        const why = await client.withDeadline(Date.now() + PROBE_DEADLINE_MS, () =>
          whyNoWorker(client, queue),
        );
        return why === null ? [] : [{ name: "worker", why }];
      } catch {
        return [{ name: "temporal", why: "temporal cannot be reached" }];
      }
    },
    async close() {
      // A retry on a closed connection throws where nothing catches it.
      closing.abort();
      await Promise.all([sandboxes.settled(), ...titlesToShow]);
      await connection.close();
    },
  };
}

/** The workflow did not run, or closed during the update: the next try starts it. */
function isClosed(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError || error instanceof WorkflowExecutionAlreadyStartedError)
    return true;
  return failureType(error) === "AcceptedUpdateCompletedWorkflow" || grpcCode(error) === GRPC_ABORTED;
}

/** The worker completed the workflow task that carried the update without processing it: the update had no effect. */
export const wasOverlooked = (error: unknown): boolean => failureType(error) === "UnprocessedUpdate";

/** The type that the server, or the workflow, gave to the failure of an update. */
function failureType(error: unknown): string | null {
  if (!(error instanceof WorkflowUpdateFailedError)) return null;
  return error.cause instanceof ApplicationFailure ? (error.cause.type ?? null) : null;
}

const GRPC_INVALID_ARGUMENT = 3;
const GRPC_ABORTED = 10;

function grpcCode(error: unknown): number | null {
  const cause = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(cause) ? cause.code : null;
}

/** @throws Problem when the answer does not come from our workers. */
function authenticated<T>(answer: T): T {
  if (isUnauthenticated(answer)) throw unreachable();
  return answer;
}

/** A rejection or "unavailable" as a Problem; any other error is a defect and is returned unchanged. */
function asProblem(error: unknown, conversationId: string | null): unknown {
  if (error instanceof WorkflowUpdateFailedError && conversationId !== null) {
    const refusal = error.cause instanceof ApplicationFailure ? refusalOf(error.cause) : null;
    return refusal === null ? error : rejectionProblem(refusal, conversationId);
  }
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return unreachable();
  const code = grpcCode(error);
  if (code !== null && code !== GRPC_INVALID_ARGUMENT) return unreachable();
  return error instanceof WorkflowNotFoundError ? unreachable() : error;
}

function refusalOf(failure: ApplicationFailure): UpdateRejection | null {
  const [detail] = failure.details ?? [];
  return isRefusal(detail) && detail.code === failure.type ? detail : null;
}

const isRefusal = (value: unknown): value is UpdateRejection =>
  typeof value === "object" && value !== null && "code" in value && "message" in value && "state" in value;

const unreachable = (): Problem => unavailable("Temporal, or a worker of it, does not answer.");
