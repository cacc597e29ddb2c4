/**
 * Owns: noticing a Temporal server on which conversations stand still for up to a second when they continue as a new
 * run: without `history.workflowIdReuseMinimalInterval: 0s`, a second has to lie between the starts of two runs.
 */
import type { NativeConnection } from "@temporalio/worker";
import type { WorkflowInfo } from "@temporalio/workflow";
import { LRUCache } from "lru-cache";

type Run = Pick<WorkflowInfo, "workflowId" | "runId" | "namespace" | "continuedFromExecutionRunId">;

/** Milliseconds from the beginning of a run to that of the next one, if that had to wait; timers are late. */
const INTERVAL = { least: 950, most: 1_500 } as const;
const RUNS_KEPT = 1_000;

const ADVICE =
  "Conversations stand still for up to a second when they continue as a new run, because of a setting of the Temporal " +
  "server. Set history.workflowIdReuseMinimalInterval to 0s in its dynamic configuration (docs/temporal.md).";

export class LateRuns {
  readonly #connection: NativeConnection;
  readonly #beginnings = new LRUCache<string, number>({ max: RUNS_KEPT });
  #isKnown = false;

  constructor(connection: NativeConnection) {
    this.#connection = connection;
  }

  /**
   * Asks the server why a run began late, if it may have been for this. What operators should read is printed once.
   *
   * @param at when a worker first had the run, in milliseconds since the epoch
   */
  take(run: Run, at: number): void {
    this.#beginnings.set(run.runId, at);
    const before = this.#beginnings.get(run.continuedFromExecutionRunId ?? "");
    if (this.#isKnown || before === undefined) return;
    const interval = at - before;
    if (interval < INTERVAL.least || interval > INTERVAL.most) return;
    void this.#waited(run).then(
      (waited) => {
        if (waited && !this.#isKnown) console.warn(`Warning: ${ADVICE}`);
        this.#isKnown ||= waited;
      },
      // The server has worse problems, or none.
      () => undefined,
    );
  }

  async #waited({ namespace, workflowId, runId }: Run): Promise<boolean> {
    const { history } = await this.#connection.workflowService.getWorkflowExecutionHistory({
      namespace,
      execution: { workflowId, runId },
      maximumPageSize: 1,
    });
    const wait = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.firstWorkflowTaskBackoff;
    return wait !== null && wait !== undefined;
  }
}
