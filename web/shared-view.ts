/**
 * Owns: a page's side of the shared worker: it holds the models that the worker keeps up to date. Where the browser has
 * no shared workers, or the worker does not answer, the page has a client of its own.
 */
import { createClient, Models, type Client, type View } from "../client/index.ts";
import type { FromPage, ToPage } from "./shared-protocol.ts";

/** @param token null: none */
export function openView(token: string | null): View {
  return typeof SharedWorker === "undefined"
    ? createClient({ url: window.location.origin, token })
    : new SharedView(token);
}

/** Milliseconds for the worker to answer, and between two questions whether it is there. */
const ANSWER_MS = 3_000;
const ASK_EVERY_MS = 15_000;

class SharedView implements View {
  readonly models = new Models();
  readonly #port: MessagePort;
  readonly #token: string | null;
  readonly #holders = new Map<string, number>();
  readonly #ended = new AbortController();
  /** The worker has been told of this page. */
  #isKnown = false;
  #answered: () => void = () => undefined;
  readonly #asking: ReturnType<typeof setInterval>;
  /** Takes the worker's place if it does not answer, with what it holds for each conversation. */
  #own: { readonly client: Client; readonly releases: Map<string, () => void> } | null = null;

  constructor(token: string | null) {
    this.#token = token;
    const worker = new SharedWorker(STREAM_WORKER_URL, { type: "module", name: "bedrock" });
    worker.onerror = () => this.#goAlone();
    this.#port = worker.port;
    this.#port.onmessage = ({ data }: MessageEvent<ToPage>) => this.#receive(data);
    const { signal } = this.#ended;
    window.addEventListener("pagehide", () => this.#send({ kind: "bye" }), { signal });
    // It comes back from the browser's cache of pages.
    window.addEventListener("pageshow", ({ persisted }) => persisted && this.#sayHello(), { signal });
    window.addEventListener("online", () => this.reconnect(), { signal });
    this.#asking = setInterval(() => document.hidden || this.#ask(), ASK_EVERY_MS);
    this.#sayHello();
  }

  open(id: string): () => void {
    const others = this.#holders.get(id) ?? 0;
    this.#holders.set(id, others + 1);
    if (others === 0) this.#open(id);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const left = (this.#holders.get(id) ?? 1) - 1;
      this.#holders.set(id, left);
      if (left > 0) return;
      this.#holders.delete(id);
      this.#close(id);
      this.models.apply({ kind: "closed", id });
    };
  }

  reconnect(): void {
    this.#send({ kind: "reconnect" });
    this.#own?.client.reconnect();
  }

  end(): void {
    clearInterval(this.#asking);
    this.#send({ kind: "bye" });
    this.#ended.abort();
    this.#port.close();
    this.#own?.client.end();
  }

  #open(id: string): void {
    this.#send({ kind: "open", id });
    this.#own?.releases.set(id, this.#own.client.open(id));
  }

  #close(id: string): void {
    this.#send({ kind: "close", id });
    this.#own?.releases.get(id)?.();
    this.#own?.releases.delete(id);
  }

  #receive(message: ToPage): void {
    switch (message.kind) {
      case "change":
        if (this.#own === null) this.models.apply(message.change);
        return;
      case "pong":
        this.#answered();
        return;
      case "failure":
        console.error(`In the shared worker: ${message.message}`);
        return;
    }
  }

  #sayHello(): void {
    this.#isKnown = false;
    holdLock(this.#ended.signal, (lock) => {
      this.#isKnown = true;
      this.#send({ kind: "hello", token: this.#token, lock });
      for (const id of this.#holders.keys()) this.#send({ kind: "open", id });
      this.#ask();
    });
  }

  /** Browsers end workers in silence, or leave one that does nothing any more. */
  #ask(): void {
    if (this.#own !== null) return;
    const timer = setTimeout(() => this.#goAlone(), ANSWER_MS);
    this.#answered = () => clearTimeout(timer);
    this.#send({ kind: "ping" });
  }

  #goAlone(): void {
    if (this.#own !== null || this.#ended.signal.aborted) return;
    const client = createClient({ url: window.location.origin, token: this.#token });
    client.models.subscribe((change) => {
      if (change.kind !== "closed") this.models.apply(change);
    });
    this.#own = { client, releases: new Map() };
    for (const id of this.#holders.keys()) this.#own.releases.set(id, client.open(id));
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
