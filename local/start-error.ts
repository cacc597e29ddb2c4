/** Owns: failures that the person who starts the system can do something about. Their message is shown alone. */

/** `message` is plain text for a person: what is missing, and what to do next. */
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
