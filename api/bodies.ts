/**
 * Owns: how a request's body comes to its route. Each body is received independently (uploads.ts), then read and
 * decoded. Large bodies are decoded in turn, and none of them holds its turn while it waits for the network.
 */
import type { MiddlewareHandler } from "hono";
import { Semaphore } from "../images/semaphore.ts";
import { UPLOAD_DEADLINE_MS } from "../protocol/timing.ts";
import { Problem, tooLarge, unavailable } from "./problem.ts";
import { Uploads, type UploadLimits } from "./uploads.ts";

/** Bytes of a request's body. */
export const BODY_LIMIT = 32 * 1024 * 1024;

const LIMITS: UploadLimits = {
  bodyBytes: BODY_LIMIT,
  // 32 bodies of the largest size.
  fileBytes: 32 * BODY_LIMIT,
  paceMs: 5_000,
  deadlineMs: UPLOAD_DEADLINE_MS,
};

/** Bytes. Only a larger body has to wait for its turn. */
const LARGE_BODY = 1024 * 1024;
/** Large bodies at a time. A message full of images takes ten times its size in memory. */
const LARGE_BODIES = 3;
/** Milliseconds that a large body waits for its turn before it is refused. */
const TURN_MS = 20_000;

/**
 * Refuses with 400, 408 or 413. The handlers after it find the whole body as text.
 *
 * @param limits override the usual limits, so that tests need not wait long.
 */
export function bodies(limits: Partial<UploadLimits> = {}): MiddlewareHandler {
  const uploads = new Uploads({ ...LIMITS, ...limits });
  const gate = new Semaphore(LARGE_BODIES);
  return async (c, next) => {
    const { body, signal } = c.req.raw;
    if (body === null) return next();
    if (Number(c.req.header("content-length")) > BODY_LIMIT) throw tooLarge(BODY_LIMIT);
    await uploads.use(body, async (upload) => {
      const decode = async (): Promise<void> => {
        const text = decoded(await upload.read());
        await upload.discard();
        // Hono caches the promise of a body that was read, although its type says `string`.
        Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
        await next();
      };
      await (upload.size <= LARGE_BODY ? decode() : inTurn(gate, decode, signal));
    });
  };
}

/** @param gone aborts when the client no longer waits. */
async function inTurn(gate: Semaphore, work: () => Promise<void>, gone: AbortSignal): Promise<void> {
  const waiting = new AbortController();
  const giveUp = (why: string): void => waiting.abort(unavailable(why));
  const leave = (): void => giveUp("The request was given up.");
  const timer = setTimeout(giveUp, TURN_MS, "Too many large bodies came at a time.");
  gone.addEventListener("abort", leave, { once: true });
  if (gone.aborted) leave();
  try {
    await gate.run(work, waiting.signal);
  } finally {
    clearTimeout(timer);
    gone.removeEventListener("abort", leave);
  }
}

/** JSON is UTF-8 (RFC 8259). Lenient decoding would store other characters than the client sent. */
function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Problem("malformed_json", "The body is not UTF-8.");
  }
}
