/** Owns: Stop for pages that are made with the AI SDK, whose `stop()` only closes the connection (docs/ai-sdk.md). */

const CHAT = "/api/ai/chat";

/**
 * A `fetch` for the AI SDK's chat transports: `new DefaultChatTransport({ api, fetch: stoppingFetch() })`. When the page
 * calls `stop()`, the run is stopped with its process tree, and what waits is held. A connection that breaks stops
 * nothing. Pass the page's own `fetch` if it has one.
 */
export function stoppingFetch(by: typeof fetch = fetch): typeof fetch {
  return async (input, init) => {
    const url = typeof input === "string" ? input : input instanceof URL ? input.href : input.url;
    const id = chatIdIn(url, init?.body);
    const [base] = url.split(CHAT);
    if (id !== null)
      init?.signal?.addEventListener(
        "abort",
        () => {
          const headers = new Headers(init.headers);
          headers.set("content-type", "application/json");
          const body = JSON.stringify({ queue: "hold" });
          void by(`${base}/api/conversations/${id}/cancel`, {
            method: "POST",
            headers,
            body,
            keepalive: true,
            ...(init.credentials === undefined ? {} : { credentials: init.credentials }),
          }).catch(() => undefined);
        },
        { once: true },
      );
    return by(input, init);
  };
}

/** Of a message the body has it, of a run that is followed again the address. */
function chatIdIn(url: string, body: RequestInit["body"]): string | null {
  const [, path = ""] = url.split(CHAT);
  const followed = /^\/([^./?]+)[^/]*\/stream/.exec(path)?.[1];
  if (followed !== undefined) return followed;
  if (typeof body !== "string") return null;
  const { id } = JSON.parse(body) as { readonly id?: unknown };
  return typeof id === "string" ? encodeURIComponent(id) : null;
}
