/** Owns: the exit codes of the command line (docs/command-line.md), and the code of an error. */
import { Refused, Unreachable } from "../client/index.ts";
import { StartError } from "../local/start-error.ts";
import type { Outcome } from "../client/outcome.ts";

export const EXIT = {
  done: 0,
  failed: 1,
  waits: 2,
  exhausted: 3,
  usage: 64,
  unreachable: 69,
  unauthorized: 77,
  timeout: 124,
  cancelled: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The command was used wrongly. The message is a sentence with what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The code of a command that ended by an error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof Unreachable || error instanceof StartError) return EXIT.unreachable;
  if (!(error instanceof Refused)) return EXIT.failed;
  const { code, status } = error.problem;
  if (code === "unauthorized" || code === "forbidden_role") return EXIT.unauthorized;
  if (status === 503) return EXIT.unreachable;
  return status === 404 || status === 422 || status === 413 ? EXIT.usage : EXIT.failed;
}

export function codeOf(outcome: Outcome): ExitCode {
  switch (outcome.kind) {
    case "done":
      return EXIT.done;
    case "failed":
    case "held":
      return EXIT.failed;
    case "cancelled":
      return EXIT.cancelled;
    case "exhausted":
      return EXIT.exhausted;
  }
}
