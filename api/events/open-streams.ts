/** Owns: the event streams that are open: they end with the process, and with the token that opened them. */
import type { Caller } from "../access/access.ts";
import type { Deps } from "../deps.ts";
import type { SseWriter } from "./sse-writer.ts";

export class OpenStreams {
  readonly #open = new Set<SseWriter>();
  readonly #deps: Pick<Deps, "closing" | "metrics">;

  constructor(deps: Pick<Deps, "closing" | "metrics">) {
    this.#deps = deps;
    deps.closing.addEventListener("abort", () => {
      for (const writer of this.#open) writer.end();
    });
  }

  /** The response whose body the writer writes, as long as the caller's token is good. */
  respond(
    writer: SseWriter,
    { revoked }: Pick<Caller, "revoked">,
    headers: Readonly<Record<string, string>> = {},
  ): Response {
    if (this.#deps.closing.aborted || revoked.aborted) writer.end();
    else this.#open.add(writer);
    const cut = () => writer.cut();
    revoked.addEventListener("abort", cut, { once: true });
    void writer.closed.then(() => revoked.removeEventListener("abort", cut));
    void writer.closed.then(() => this.#open.delete(writer));
    this.#deps.metrics.countStream(writer.closed);
    return new Response(writer.readable, {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-store",
        // Tells proxies not to buffer the response.
        "x-accel-buffering": "no",
        ...headers,
      },
    });
  }
}
