/**
 * Owns: which script answers which request. A request belongs to the script that the first `[[script:name]]` in the
 * user's texts names. So one server scripts many conversations in parallel. Without a mark the fallback answers.
 */
import type { MessagesRequest } from "./messages.ts";
import { userTexts } from "./reading.ts";
import { fail, type Answer } from "./script.ts";

export type ParsedRequest = {
  readonly body: MessagesRequest;
  /** The name of the script; null for the fallback. */
  readonly key: string | null;
};

/** Answers the `n`th request of a script, counted from 1; refused requests count, too. */
export type Handler = (request: ParsedRequest, n: number) => Answer | Promise<Answer>;

/** The mark that the first message of a conversation needs, so that the script `name` answers it. */
export const scriptTag = (name: string): string => `[[script:${name}]]`;

export function scriptOf(request: MessagesRequest): string | null {
  for (const text of userTexts(request)) {
    const name = /\[\[script:([^\]]+)\]\]/.exec(text)?.[1];
    if (name !== undefined) return name;
  }
  return null;
}

export class Scripts {
  readonly #handlers = new Map<string, Handler>();
  readonly #fallback: Handler;

  constructor(fallback: Handler) {
    this.#fallback = fallback;
  }

  /** Throws if the name is taken. */
  add(name: string, script: Handler | readonly Answer[]): void {
    if (this.#handlers.has(name)) throw new Error(`There is a script named "${name}" already.`);
    this.#handlers.set(name, typeof script === "function" ? script : inOrder(name, script));
  }

  /**
   * The answer of the script, or an error that clients do not retry: a mistake in a script must not look like an
   * outage.
   */
  async answer(request: ParsedRequest, n: number): Promise<Answer> {
    const handler = request.key === null ? this.#fallback : this.#handlers.get(request.key);
    if (handler === undefined) return mistake(`There is no script named "${request.key ?? ""}".`);
    try {
      return await handler(request, n);
    } catch (error) {
      return mistake(error instanceof Error ? error.message : String(error));
    }
  }
}

function inOrder(name: string, answers: readonly Answer[]): Handler {
  return (_request, n) =>
    answers[n - 1] ??
    mistake(`The script "${name}" has ${answers.length} answers, and none for request ${n}.`);
}

const mistake = (message: string): Answer =>
  fail("invalid_request_error", { message: `Scripted model: ${message}` });
