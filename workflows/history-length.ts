/**
 * Owns: the length of history from which a run hands over to the next, as soon as nothing is in flight, so that replays
 * stay fast.
 */
import { workflowInfo } from "@temporalio/workflow";

/** A replay takes about 0.6 ms an event (docs/temporal.md). */
const LONG_EVENTS = 250;
const LARGE_BYTES = 8 * 1024 * 1024;

/** The next run should take over, now or between two rounds. */
export function isHistoryLong(): boolean {
  const { historyLength, historySize } = workflowInfo();
  return historyLength >= LONG_EVENTS || historySize >= LARGE_BYTES;
}
