/**
 * Owns: counting the bytes of the provider's answers before the SDK gets them. The SDK collects what comes until a
 * line, an event or a body ends. Beyond the limits (limits.ts) the connection is cut. Answers are handed on in small
 * pieces, and other work gets its turn between pieces.
 */
import { setImmediate } from "node:timers/promises";
import { EVENT_OVERHEAD, LINES, STREAM_TEXT_BYTES, TooMuch } from "./limits.ts";

/** Bytes that are handed on at once: they may hold thousands of the shortest events. */
const PIECE_BYTES = 16 * 1024;
/**
 * Milliseconds after which other work gets its turn. Reading what has come already does not yield, and it may be much.
 */
const TURN_MS = 10;

/** `fetch` for answers of the provider, errors included. Rejects with TooMuch, or ends the body with it. */
export async function boundedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init).catch(rethrow);
  if (response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(bounded(response.body, init?.signal), { status, statusText, headers });
}

/** Counts a piece; throws TooMuch. An event ends with an empty line; a body without one is a single event. */
function createCounter(): (piece: Uint8Array) => void {
  let [lines, textBytes, eventBytes] = [0, 0, 0];
  let isEmptyLine = true;
  return (piece) => {
    for (const byte of piece) {
      if (++eventBytes > EVENT_OVERHEAD) textBytes++;
      if (byte === LF) {
        lines++;
        if (isEmptyLine) eventBytes = 0;
        isEmptyLine = true;
      } else if (byte !== CR) isEmptyLine = false;
    }
    if (textBytes > STREAM_TEXT_BYTES)
      throw new TooMuch(`its stream has more than ${STREAM_TEXT_BYTES} bytes of text`);
    if (lines > LINES) throw new TooMuch(`its stream has more than ${LINES} lines`);
  };
}

const [LF, CR] = [0x0a, 0x0d];

/**
 * @param signal ends the body at once: `fetch` itself waits for ever for a body that cannot be unpacked, aborted or
 *   not.
 */
function bounded(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | null | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const count = createCounter();
  let rest: Uint8Array = new Uint8Array();
  let turned = performance.now();
  const hangUp = (reason?: unknown): void => void reader.cancel(reason).catch(() => undefined);
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = (): void => {
          controller.error(signal?.reason);
        };
        signal?.addEventListener("abort", end, { once: true });
      },
      // An error that is thrown here ends the stream with it.
      async pull(controller) {
        if (performance.now() - turned > TURN_MS) {
          await setImmediate();
          turned = performance.now();
        }
        while (rest.length === 0) {
          const { done, value } = await reader.read().catch(rethrow);
          if (done) {
            controller.close();
            return;
          }
          rest = value;
        }
        const piece = rest.subarray(0, PIECE_BYTES);
        rest = rest.subarray(piece.length);
        try {
          count(piece);
        } catch (error) {
          hangUp(error);
          throw error;
        }
        controller.enqueue(piece);
      },
      cancel: hangUp,
    },
    { highWaterMark: 0 },
  );
}

/** undici bounds headers and trailers. */
function rethrow(error: unknown): never {
  const cause = error instanceof Error ? error.cause : null;
  const isOverflow = cause instanceof Error && "code" in cause && cause.code === "UND_ERR_HEADERS_OVERFLOW";
  throw isOverflow ? new TooMuch("its headers are too long") : error;
}
