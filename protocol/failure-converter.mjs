/**
 * Owns: how an error becomes a failure on its way to Temporal: its message and stack go as a payload, which is encrypted
 * like all others. Plain JavaScript: Temporal's SDK loads it by its path, in processes and in the bundle of workflows.
 */
import { DefaultFailureConverter } from "@temporalio/common";

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
