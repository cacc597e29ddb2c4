/**
 * Owns: telling the workflow that Postgres does not take a commit, and would not the next time either: a constraint, a
 * value that it cannot store. Tried again for ever, such a commit would hold up the conversation for ever.
 */
import { ApplicationFailure } from "@temporalio/activity";
import { sqlErrorOf, isUnavailable } from "../db/errors.ts";
import { COMMIT_REFUSED } from "../protocol/commit.ts";

/** @throws what `isUnavailable` knows as it is; anything else as the failure that is not tried again. */
export async function orRefused<T>(committing: Promise<T>): Promise<T> {
  try {
    return await committing;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    // The reason is shown to the person: the error's own text may hold what was to be stored.
    const { code, constraint } = sqlErrorOf(error);
    const reason = [code ?? "an internal error", ...(constraint === null ? [] : [constraint])].join(", ");
    console.error("A commit was refused:", error);
    throw ApplicationFailure.nonRetryable(reason, COMMIT_REFUSED, reason);
  }
}
