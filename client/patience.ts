/**
 * Owns: waiting as long as a server says. A request that it refused because there were too many (429 with Retry-After)
 * had no effect, so it is sent again, and not before.
 */

/** Milliseconds for which a request is sent again. The server counts by the minute. */
const PATIENCE_MS = 130_000;

/** Milliseconds that the server wants a client to wait; null: it says nothing of that. */
export function waitOf({ status, headers }: Response): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return status === 429 && Number.isFinite(seconds) ? seconds * 1_000 : null;
}

/**
 * Asks, and as long as there are too many requests, asks again when the server has said.
 *
 * @param ask sends the request; each time as a new one
 */
export async function patiently(ask: () => Promise<Response>): Promise<Response> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const response = await ask();
    const wait = waitOf(response);
    if (wait === null || Date.now() + wait > until) return response;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
