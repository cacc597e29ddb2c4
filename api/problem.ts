/**
 * Owns: errors as clients see them (docs/http.md, Errors): RFC 9457 problem documents with a stable code.
 * Not here: the problem for a workflow's rejection (rejection.ts).
 */
import { randomUUID } from "node:crypto";
import { HTTPException } from "hono/http-exception";
import { isUnavailable } from "../db/errors.ts";

/** Every code with its status and its title; a title says what kind of problem it is, `detail` says what to do. */
export const PROBLEMS = {
  malformed_request: { status: 400, title: "Malformed request" },
  malformed_json: { status: 400, title: "Malformed JSON" },
  unauthorized: { status: 401, title: "Unauthorized" },
  forbidden_role: { status: 403, title: "Forbidden role" },
  forbidden_origin: { status: 403, title: "Forbidden origin" },
  not_found: { status: 404, title: "Not found" },
  request_timeout: { status: 408, title: "Request timeout" },
  agent_busy: { status: 409, title: "The agent is busy" },
  cancellation_in_progress: { status: 409, title: "Cancellation in progress" },
  context_exhausted: { status: 409, title: "The context is exhausted" },
  no_pending_approval: { status: 409, title: "No pending approval" },
  approval_mismatch: { status: 409, title: "Another approval is pending" },
  approval_required: { status: 409, title: "Approval required" },
  sandbox_unavailable: { status: 409, title: "The sandbox is unavailable" },
  already_delivered: { status: 409, title: "Already delivered" },
  message_id_conflict: { status: 409, title: "The message id is taken" },
  already_exists: { status: 409, title: "Already exists" },
  sub_agent_read_only: { status: 409, title: "A sub-agent is read-only" },
  no_summary: { status: 409, title: "No summary" },
  nothing_to_summarise: { status: 409, title: "Nothing to summarise" },
  payload_too_large: { status: 413, title: "Payload too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  invalid_request: { status: 422, title: "Invalid request" },
  invalid_cwd: { status: 422, title: "Invalid working directory" },
  invalid_image: { status: 422, title: "Invalid image" },
  conversation_limit_reached: { status: 409, title: "The conversation's spending limit is reached" },
  no_price: { status: 409, title: "The model's price is not known" },
  rate_limited: { status: 429, title: "Too many requests" },
  queue_full: { status: 429, title: "The queue is full" },
  daily_limit_reached: { status: 429, title: "The day's spending limit is reached" },
  headers_too_large: { status: 431, title: "Headers too large" },
  internal: { status: 500, title: "Internal error" },
  sandbox_unknown: { status: 503, title: "The sandbox could not be tried" },
  unavailable: { status: 503, title: "Temporarily unavailable" },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** Seconds after which an unavailable service is worth another try. */
const RETRY_AFTER_SECONDS = 1;

/** Thrown anywhere below a route; answered as a problem document. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly members: { readonly [name: string]: unknown };

  /**
   * @param detail a sentence for the user: what is wrong and what to do next.
   * @param members further members of the document.
   */
  constructor(code: ProblemCode, detail: string, members: { readonly [name: string]: unknown } = {}) {
    super(detail);
    this.code = code;
    this.members = members;
  }

  toResponse(): Response {
    const { status, headers, body } = this.toAnswer();
    return new Response(body, { status, headers });
  }

  toAnswer(): { status: number; headers: { [name: string]: string }; body: string } {
    const { status, title } = PROBLEMS[this.code];
    const body = JSON.stringify({
      type: `urn:bedrock:problem:${this.code}`,
      title,
      status,
      code: this.code,
      detail: this.message,
      ...this.members,
    });
    const headers: { [name: string]: string } = {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    };
    if (status === 401) headers["www-authenticate"] = "Bearer";
    // The server does not wait for the rest of a body that came too slowly.
    if (status === 408) headers["connection"] = "close";
    if (status === 503) headers["retry-after"] = String(RETRY_AFTER_SECONDS);
    // Seconds, of a problem that passes by itself.
    if (typeof this.members["retryAfter"] === "number")
      headers["retry-after"] = String(this.members["retryAfter"]);
    return { status, headers, body };
  }
}

/** Receives errors that are no rejection; `id` is the one that the client got. */
export type ReportError = (id: string, error: unknown) => void;

/**
 * Turns any error into a problem. An unknown one is reported under an id, and the problem has none of its text.
 *
 * @param id of the request
 */
export function toProblem(error: unknown, report: ReportError, id: string = randomUUID()): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof HTTPException && error.status === 400) {
    return new Problem("malformed_json", "The body is not valid JSON.");
  }
  if (error instanceof HTTPException && error.status === 415) return unsupportedMediaType();
  if (isUnavailable(error)) return unavailable("The database cannot be reached.");
  report(id, error);
  return new Problem("internal", `Something went wrong here. The log has it under ${id}.`, { id });
}

export function notFound(what = "conversation"): Problem {
  return new Problem("not_found", `There is no such ${what}.`);
}

/** @param why a sentence that names what cannot be reached. */
export function unavailable(why: string, members: { readonly [name: string]: unknown } = {}): Problem {
  const next = "Try again. Whether a change was made is not known: repeat it with the same id.";
  return new Problem("unavailable", `${why} ${next}`, members);
}

export function tooLarge(bytes: number): Problem {
  return new Problem("payload_too_large", `A body has at most ${bytes} bytes.`);
}

export function unsupportedMediaType(): Problem {
  return new Problem(
    "unsupported_media_type",
    "Send the body as JSON, in UTF-8, with content-type: application/json.",
  );
}
