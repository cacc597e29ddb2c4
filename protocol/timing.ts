/**
 * Owns: the time-outs that several processes must agree on, in milliseconds, each derived from those that it depends on.
 * docs/temporal.md has the measurements behind them.
 * Not here: a time-out that one file alone uses.
 */

/** If a worker has not completed a workflow task within this time, the server takes it for dead. */
export const WORKFLOW_TASK_TIMEOUT_MS = 2_000;
/** A workflow's tasks wait this long for the worker that has it in its cache; then any worker may take them. */
export const STICKY_TIMEOUT_MS = WORKFLOW_TASK_TIMEOUT_MS / 2;

/** Temporal times an activity out when it has recorded no heartbeat of it for this long. */
export const HEARTBEAT_TIMEOUT_MS = 2_000;
export const HEARTBEAT_INTERVAL_MS = HEARTBEAT_TIMEOUT_MS / 4;
/** An activity may work for this long after a recorded heartbeat. The rest of the time-out is for ending a tool. */
export const LEASE_MS = 0.8 * HEARTBEAT_TIMEOUT_MS;
/**
 * An activity that was ordered longer ago may have timed out already, so it asks the server before it begins. This
 * compares the clocks of two hosts. They may differ by `HEARTBEAT_TIMEOUT_MS - LEASE_MS` minus the time that ending a
 * tool takes.
 */
export const FRESH_TASK_MS = HEARTBEAT_INTERVAL_MS;
/** A cancel reaches an activity within this time, at the latest with the answer to a heartbeat. */
export const CANCEL_ARRIVES_MS = HEARTBEAT_TIMEOUT_MS;

/** The workflow waits this long for a conversation's work to stop before it removes the rows. */
export const STOP_BEFORE_REMOVAL_MS = 5_000;
/** The workflow compares with the row for this long before it answers a Stop that changes nothing. */
export const VERIFY_BEFORE_STOP_MS = 1_000;
/** The API waits this long for an update: the longest wait of the workflow, and the time to find a worker. */
export const UPDATE_DEADLINE_MS = STOP_BEFORE_REMOVAL_MS + 7_000;

/** Many requests to a tool host wait for one another: 50 of them take 3 s on a small machine. */
export const HOST_START_TIMEOUT_MS = 4_000;
export const HOST_RUN_TIMEOUT_MS = 4_000;
/** A call that has waited so long for its host asks whether the host is there. */
export const HOST_PATIENCE_MS = 2_000;
export const HOST_DEADLINE_MS = HOST_START_TIMEOUT_MS + HOST_RUN_TIMEOUT_MS;

/** The API answers every request within this time: one request to a host, then one update. */
export const REQUEST_DEADLINE_MS = HOST_DEADLINE_MS + UPDATE_DEADLINE_MS;

/** The body of a request is whole within this time: the largest one, on a line of 2 Mbit/s. */
export const UPLOAD_DEADLINE_MS = 120_000;
