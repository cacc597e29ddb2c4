/**
 * Owns: an interceptor by which an activity does nothing for an order of another program. It also puts the reason of a
 * failure into its details: nobody else can make those, but anybody can make a failure with a message.
 */
import { ApplicationFailure, CancelledFailure } from "@temporalio/activity";
import type { ActivityInterceptors } from "@temporalio/worker";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";

/** Each activity takes one object. */
export const refuseUnauthenticated = (): ActivityInterceptors => ({
  inbound: {
    async execute(input, next) {
      if (input.args.length === 0 || input.args.some(isUnauthenticated)) {
        throw ApplicationFailure.nonRetryable("The order does not come from this installation.");
      }
      try {
        return await next(input);
      } catch (error) {
        throw withEncryptedReason(error);
      }
    },
  },
});

function withEncryptedReason(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof CancelledFailure || error.name === "AbortError")
    return error;
  const hasDetails = error instanceof ApplicationFailure && (error.details ?? []).length > 0;
  return hasDetails ? error : ApplicationFailure.fromError(error, { details: [error.message] });
}
