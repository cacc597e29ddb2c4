/**
 * Owns: how a request's body comes to its route: received by itself (uploads.ts), then read and decoded, the large ones in
 * turn. Nothing that waits for the network has a turn.
 */
import type { MiddlewareHandler } from "hono";
import { Semaphore } from "../images/semaphore.ts";
import { Problem, tooLarge, unavailable } from "./problem.ts";
import { Uploads, type UploadLimits } from "./uploads.ts";

/** Bytes of a request's body. */
export const BODY_LIMIT = 32 * 1024 * 1024;

const LIMITS: UploadLimits = {
  bodyBytes: BODY_LIMIT,
  // Of 32 of the largest.
  fileBytes: 32 * BODY_LIMIT,
  paceMs: 5_000,
  // The largest by a line of 2 Mbit/s.
  deadlineMs: 120_000,
};

/** Bytes of a body that is nothing special. */
const LARGE_BODY = 1024 * 1024;
/** A message full of images takes ten times its size in memory. */
const LARGE_BODIES = 3;
/** Milliseconds in which its turn comes, or it is refused. */
const TURN_MS = 20_000;

/**
 * Refuses with 400, 408 or 413. What comes after it finds the body as text, whole.
 *
 * @param limits others than usual, for a test that is in a hurry.
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
        // What is read once is cached as it is awaited, which hono's own type does not say.
        Object.assign(c.req.bodyCache, { text: Promise.resolve(text) });
        await next();
      };
      await (upload.size <= LARGE_BODY ? decode() : inTurn(gate, decode, signal));
    });
  };
}

/** @param gone aborts when nobody waits any more. */
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

/** JSON is UTF-8 (RFC 8259). What is not would be stored as other characters than were sent. */
function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Problem("malformed_json", "The body is not UTF-8.");
  }
}
