/** Owns: failures that the user who starts the system can do something about. Only their message is shown. */

/** `message` is plain text for a user: what is missing, and what to do next. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** The sentence of any failure; never a stack. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" && !error.message.includes(cause.message)
    ? `${error.message} (${cause.message})`
    : error.message;
}
