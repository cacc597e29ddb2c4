/**
 * Owns: a page's side of the shared worker: it holds the models that the worker keeps up to date. Where the browser has
 * no shared workers, the page has a client of its own.
 */
import { createClient, Models, type View } from "../client/index.ts";
import type { FromPage, ToPage } from "./shared-protocol.ts";

/** @param token null: none */
export function openView(token: string | null): View {
  return typeof SharedWorker === "undefined"
    ? createClient({ url: window.location.origin, token })
    : new SharedView(token);
}

class SharedView implements View {
  readonly models = new Models();
  readonly #port: MessagePort;
  readonly #token: string | null;
  readonly #holders = new Map<string, number>();
  readonly #ended = new AbortController();
  /** The worker has been told of this page. */
  #isKnown = false;

  constructor(token: string | null) {
    this.#token = token;
    const worker = new SharedWorker(STREAM_WORKER_URL, { type: "module", name: "bedrock" });
    this.#port = worker.port;
    this.#port.onmessage = ({ data }: MessageEvent<ToPage>) => this.models.apply(data);
    const { signal } = this.#ended;
    window.addEventListener("pagehide", () => this.#send({ kind: "bye" }), { signal });
    // It comes back from the browser's cache of pages.
    window.addEventListener("pageshow", ({ persisted }) => persisted && this.#sayHello(), { signal });
    window.addEventListener("online", () => this.reconnect(), { signal });
    this.#sayHello();
  }

  open(id: string): () => void {
    const others = this.#holders.get(id) ?? 0;
    this.#holders.set(id, others + 1);
    if (others === 0) this.#send({ kind: "open", id });
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = (this.#holders.get(id) ?? 1) - 1;
      this.#holders.set(id, left);
      if (left > 0) return;
      this.#holders.delete(id);
      this.#send({ kind: "close", id });
      this.models.apply({ kind: "closed", id });
    };
  }

  reconnect(): void {
    this.#send({ kind: "reconnect" });
  }

  end(): void {
    this.#ended.abort();
    this.#send({ kind: "bye" });
    this.#port.close();
  }

  #sayHello(): void {
    this.#isKnown = false;
    holdLock(this.#ended.signal, (lock) => {
      this.#isKnown = true;
      this.#send({ kind: "hello", token: this.#token, lock });
      for (const id of this.#holders.keys()) this.#send({ kind: "open", id });
    });
  }

  /** What is said before `hello` is said by it. */
  #send(message: FromPage): void {
    if (this.#isKnown) this.#port.postMessage(message);
  }
}

/**
 * Takes a lock that this page holds until it ends, however it ends. Locks are only where the origin is secure.
 *
 * @param held called when it is held, with its name; null: there are no locks.
 */
function holdLock(signal: AbortSignal, held: (name: string | null) => void): void {
  if (!("locks" in navigator)) {
    held(null);
    return;
  }
  const name = `bedrock-page-${Math.random().toString(36).slice(2)}`;
  const untilEnd = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  void navigator.locks.request(name, () => {
    held(name);
    return untilEnd;
  });
}
