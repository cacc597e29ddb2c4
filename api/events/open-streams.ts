/** Owns: the event streams that are open: they end with the process. */
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

  /** The response whose body the writer writes. */
  respond(writer: SseWriter, headers: Readonly<Record<string, string>> = {}): Response {
    if (this.#deps.closing.aborted) writer.end();
    else this.#open.add(writer);
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
