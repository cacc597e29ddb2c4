/**
 * Owns: telling the workflow that Postgres refuses a commit and would refuse it again: a constraint, a value that it
 * cannot store. If such a commit were retried for ever, it would block the conversation for ever.
 */
import { ApplicationFailure } from "@temporalio/activity";
import { sqlErrorOf, isUnavailable } from "../db/errors.ts";
import { COMMIT_REFUSED } from "../protocol/commit.ts";

/** @throws an `isUnavailable` error as it is; any other error as a failure that is not retried. */
export async function orRefused<T>(committing: Promise<T>): Promise<T> {
  try {
    return await committing;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    // The reason is shown to the person. It leaves out the error's own text, which may contain what was to be stored.
    const { code, constraint } = sqlErrorOf(error);
    const reason = [code ?? "an internal error", ...(constraint === null ? [] : [constraint])].join(", ");
    console.error("A commit was refused:", error);
    throw ApplicationFailure.nonRetryable(reason, COMMIT_REFUSED, reason);
  }
}
