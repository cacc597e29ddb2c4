/**
 * Owns: an interceptor by which an activity does nothing for an order that is not signed. It also puts the reason of a
 * failure into its details: they are payloads and get signed, its message is none.
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/activity";
import type { ActivityInterceptors } from "@temporalio/worker";
import { isUnsigned } from "../protocol/unsigned.ts";

/** Each activity takes one object. */
export const refuseUnsigned = (): ActivityInterceptors => ({
  inbound: {
    async execute(input, next) {
      if (input.args.length === 0 || input.args.some(isUnsigned)) {
        throw ApplicationFailure.nonRetryable("The order is not signed with this installation's key.");
      }
      try {
        return await next(input);
      } catch (error) {
        throw withSignedReason(error);
      }
    },
  },
});

function withSignedReason(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof CancelledFailure || error.name === "AbortError")
    return error;
  const hasDetails = error instanceof ApplicationFailure && (error.details ?? []).length > 0;
  return hasDetails ? error : ApplicationFailure.fromError(error, { details: [error.message] });
}
