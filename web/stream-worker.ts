/**
 * Owns: the worker that all pages of one browser share. It has one event stream for each token, so that many tabs need
 * one connection. It passes to each page what the page has opened.
 */
import { createClient, type Change, type Client } from "../client/index.ts";
import type { FromPage, ToPage } from "./shared-protocol.ts";

const clients = new Map<string | null, { readonly client: Client; pages: number }>();

function acquire(token: string | null): Client {
  const shared = clients.get(token) ?? {
    client: createClient({ url: self.location.origin, token }),
    pages: 0,
  };
  shared.pages += 1;
  clients.set(token, shared);
  return shared.client;
}

function release(token: string | null): void {
  const shared = clients.get(token);
  if (shared === undefined) return;
  shared.pages -= 1;
  if (shared.pages > 0) return;
  clients.delete(token);
  shared.client.end();
}

class Page {
  readonly #port: MessagePort;
  readonly #token: string | null;
  readonly #client: Client;
  readonly #open = new Map<string, () => void>();
  readonly #unsubscribe: () => void;

  constructor(port: MessagePort, token: string | null) {
    this.#port = port;
    this.#token = token;
    this.#client = acquire(token);
    const { models } = this.#client;
    this.#send({ kind: "link", link: models.link });
    this.#send({ kind: "list", list: models.list });
    this.#unsubscribe = models.subscribe((change) => {
      if (!("id" in change) || this.#open.has(change.id)) this.#send(change);
    });
  }

  receive(message: FromPage): void {
    switch (message.kind) {
      case "open": {
        const { id } = message;
        if (this.#open.has(id)) return;
        this.#send({ kind: "conversation", id, model: this.#client.models.conversation(id) });
        this.#open.set(id, this.#client.open(id));
        return;
      }
      case "close": {
        const close = this.#open.get(message.id);
        // First, so that the page is not told of it.
        this.#open.delete(message.id);
        close?.();
        return;
      }
      case "reconnect":
        this.#client.reconnect();
        return;
      case "hello":
      case "ping":
      case "bye":
        return;
    }
  }

  end(): void {
    this.#unsubscribe();
    for (const close of this.#open.values()) close();
    this.#open.clear();
    release(this.#token);
  }

  #send(change: Change): void {
    post(this.#port, { kind: "change", change });
  }
}

const post = (port: MessagePort, message: ToPage): void => port.postMessage(message);

const ports = new Set<MessagePort>();

function serve(port: MessagePort): void {
  ports.add(port);
  let page: Page | null = null;
  const end = () => {
    page?.end();
    page = null;
  };
  port.onmessage = ({ data }: MessageEvent<FromPage>) => {
    if (data.kind === "ping") post(port, { kind: "pong" });
    else if (data.kind === "hello") {
      end();
      page = new Page(port, data.token);
      const served = page;
      // A page that crashes says no word, but loses its lock.
      if (data.lock !== null)
        void navigator.locks.request(data.lock, () => {
          if (page === served) end();
        });
    } else if (data.kind === "bye") {
      ports.delete(port);
      end();
    } else page?.receive(data);
  };
}

self.addEventListener("connect", (event) => {
  for (const port of (event as MessageEvent).ports) serve(port);
});
const fail = (message: string): void => {
  for (const port of ports) post(port, { kind: "failure", message });
};
self.addEventListener("error", ({ message }) => fail(message));
self.addEventListener("unhandledrejection", ({ reason }) => fail(String(reason)));
self.addEventListener("online", () => {
  for (const { client } of clients.values()) client.reconnect();
});
