/**
 * Owns: one connection to `GET /api/stream` that carries the list and any number of conversations, and its healing: it
 * comes back by its cursors after every loss, and notices a connection that has died without a word.
 * Not here: what the events mean (conversation-model.ts, list-model.ts).
 */
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Problem, Server } from "./calls.ts";
import type { ConversationEvent, ListEvent } from "./events.ts";
import { patiently, waitOf } from "./patience.ts";

/** Times in milliseconds since the epoch. */
export type Link =
  | { readonly kind: "connecting" }
  | { readonly kind: "connected" }
  /** `reason` is a sentence. */
  | { readonly kind: "lost"; readonly since: number; readonly retryAt: number; readonly reason: string }
  /** The server wants another token. Nothing is tried again. */
  | { readonly kind: "unauthorized" };

export type StreamReceiver = {
  readonly onLink: (link: Link) => void;
  /** Null: the list is not wanted. */
  readonly onListEvent: ((event: ListEvent) => void) | null;
  /** @param cursor of a durable event; null for live text and what a stream says of itself */
  readonly onConversationEvent: (id: string, event: ConversationEvent, cursor: string | null) => void;
};

/** Milliseconds. */
const FIRST_DELAY = 250;
const LONGEST_DELAY = 5_000;
/** Silence after which a connection counts as dead, until the server says how often it sends a heartbeat. */
const SILENCE = 32_000;
/**
 * For a new connection, which the server answers at once; doubled with each failure, for a server may be slow. Browsers
 * keep connections for the next request, and after a change of the network these are dead, too.
 */
const OPENING = 4_000;
const WATCH_EVERY = 1_000;
/** A timer that comes so late was held by a machine that slept, or a page that was frozen. */
const SLEPT = 8_000;

export class Stream {
  readonly #server: Server;
  readonly #receiver: StreamReceiver;
  /** The conversations that are wanted, each with the cursor from which to go on. */
  readonly #cursors = new Map<string, string | null>();
  #listCursor: string | null = null;
  #streamId: string | null = null;
  #connection: AbortController | null = null;
  #link: Link = { kind: "connecting" };
  #failures = 0;
  #silence = SILENCE;
  #heardAt = Date.now();
  #watchedAt = Date.now();
  #retry: ReturnType<typeof setTimeout> | null = null;
  readonly #watch: ReturnType<typeof setInterval>;
  /** Openings and closings that the server has not heard of. */
  #told: Promise<void> = Promise.resolve();

  /** Connects at once. */
  constructor(server: Server, receiver: StreamReceiver) {
    this.#server = server;
    this.#receiver = receiver;
    this.#watch = setInterval(() => this.#look(), WATCH_EVERY);
    void this.#connect();
  }

  /** Follows a conversation: from the event after the cursor on; without one, it begins with a snapshot. */
  open(id: string, cursor: string | null = null): void {
    if (this.#cursors.has(id)) return;
    this.#cursors.set(id, cursor);
    this.#tell({ open: [openingOf(id, cursor)] });
  }

  close(id: string): void {
    if (this.#cursors.delete(id)) this.#tell({ close: [id] });
  }

  /** Comes back at once: the network has changed, or the machine has slept. What was shown stays. */
  reconnect(): void {
    if (this.#link.kind === "unauthorized") return;
    this.#connection?.abort();
    void this.#connect();
  }

  end(): void {
    clearInterval(this.#watch);
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#connection?.abort();
    this.#connection = null;
  }

  async #connect(): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    const connection = new AbortController();
    this.#connection = connection;
    this.#streamId = null;
    this.#heardAt = Date.now();
    const failure = await this.#read(connection.signal).catch((error: unknown): Failure => ({
      kind: "lost",
      reason: sentenceOf(error),
    }));
    // Another connection has taken its place, or nothing is wanted any more.
    if (this.#connection !== connection) return;
    this.#connection = null;
    this.#streamId = null;
    if (failure.kind === "unauthorized") {
      this.#setLink({ kind: "unauthorized" });
      return;
    }
    const delay = Math.max(failure.waitMs ?? 0, delayAfter(this.#failures++));
    const since = this.#link.kind === "lost" ? this.#link.since : Date.now();
    this.#setLink({ kind: "lost", since, retryAt: Date.now() + delay, reason: failure.reason });
    this.#retry = setTimeout(() => void this.#connect(), delay);
  }

  /** Reads one connection until it ends. */
  async #read(signal: AbortSignal): Promise<Failure> {
    const { url, token } = this.#server;
    const asked = new Map(this.#cursors);
    const query = new URLSearchParams(
      this.#receiver.onListEvent === null ? {} : { list: this.#listCursor ?? "" },
    );
    for (const [id, cursor] of asked) query.append("conversation", cursor === null ? id : `${id}:${cursor}`);
    const response = await fetch(`${url}/api/stream?${query.toString()}`, {
      headers: {
        accept: "text/event-stream",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      signal,
    });
    if (response.status === 401) return { kind: "unauthorized" };
    if (!response.ok || response.body === null)
      return { kind: "lost", reason: await reasonOf(response), waitMs: waitOf(response) };
    const parser = createParser({ onEvent: (event) => this.#receive(event, asked) });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      // An aborted connection may have parts that were read already. Their events come again on the next one.
      if (signal.aborted || done) return { kind: "lost", reason: "The server has ended the connection." };
      this.#heardAt = Date.now();
      parser.feed(value);
    }
  }

  #receive({ event: name = "", data: text }: EventSourceMessage, asked: ReadonlyMap<string, unknown>): void {
    const received: unknown = JSON.parse(text);
    switch (name) {
      case "stream.opened": {
        this.#streamId = (received as { readonly streamId: string }).streamId;
        this.#failures = 0;
        this.#setLink({ kind: "connected" });
        this.#tellDifference(asked);
        return;
      }
      case "heartbeat": {
        const { everyMs } = received as { readonly everyMs: number };
        this.#silence = 2 * everyMs + WATCH_EVERY;
        return;
      }
      case "stream.full":
        return;
      default:
        this.#pass(name, received as Envelope);
    }
  }

  #pass(name: string, { conversationId, cursor, data }: Envelope): void {
    if (conversationId === null) {
      this.#listCursor = cursor ?? this.#listCursor;
      this.#receiver.onListEvent?.({ name, data } as ListEvent);
    } else if (this.#cursors.has(conversationId)) {
      if (cursor !== null) this.#cursors.set(conversationId, cursor);
      this.#receiver.onConversationEvent(conversationId, { name, data } as ConversationEvent, cursor);
    }
  }

  /** What was opened and closed after the connection was asked for. */
  #tellDifference(asked: ReadonlyMap<string, unknown>): void {
    const open = [...this.#cursors]
      .filter(([id]) => !asked.has(id))
      .map(([id, cursor]) => openingOf(id, cursor));
    const close = [...asked.keys()].filter((id) => !this.#cursors.has(id));
    if (open.length + close.length > 0) this.#tell({ open, close });
  }

  /** Without a stream that is open, the next connection asks for what is wanted then. */
  #tell(change: { readonly open?: readonly Opening[]; readonly close?: readonly string[] }): void {
    const { url, token } = this.#server;
    const streamId = this.#streamId;
    if (streamId === null) return;
    // In order: a conversation may be closed and opened again.
    this.#told = this.#told.then(async () => {
      if (this.#streamId !== streamId) return;
      const response = await patiently(() =>
        fetch(`${url}/api/stream/${streamId}`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify(change),
          signal: AbortSignal.timeout(SILENCE),
        }),
      ).catch(() => null);
      if (response?.ok !== true && this.#streamId === streamId) this.reconnect();
    });
  }

  #look(): void {
    const now = Date.now();
    const slept = now - this.#watchedAt > SLEPT;
    this.#watchedAt = now;
    if (this.#link.kind === "unauthorized") return;
    if (slept) this.reconnect();
    else if (this.#connection !== null && now - this.#heardAt > this.#patience()) {
      const since = this.#link.kind === "lost" ? this.#link.since : this.#heardAt;
      const isOpen = this.#streamId !== null;
      const reason = isOpen ? "The connection went silent." : "The server does not answer.";
      this.#failures += 1;
      this.#setLink({ kind: "lost", since, retryAt: now, reason });
      this.reconnect();
    }
  }

  /** Milliseconds of silence that the present connection may have. */
  #patience(): number {
    return this.#streamId === null ? Math.min(this.#silence, OPENING * 2 ** this.#failures) : this.#silence;
  }

  #setLink(link: Link): void {
    this.#link = link;
    this.#receiver.onLink(link);
  }
}

type Opening = { readonly id: string; readonly cursor?: string };

const openingOf = (id: string, cursor: string | null): Opening => (cursor === null ? { id } : { id, cursor });

type Envelope = {
  readonly conversationId: string | null;
  readonly cursor: string | null;
  readonly data: object;
};

type Failure =
  | { readonly kind: "unauthorized" }
  /** `waitMs`: how long the server wants the client to stay away. */
  | { readonly kind: "lost"; readonly reason: string; readonly waitMs?: number | null };

/** Doubled with each failure, and spread, so that many clients do not come back in the same moment. */
function delayAfter(failures: number): number {
  const delay = Math.min(FIRST_DELAY * 2 ** failures, LONGEST_DELAY);
  return delay * (0.5 + Math.random() / 2);
}

async function reasonOf(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => null)) as Problem | null;
  return problem?.detail ?? `The server answers with status ${response.status}.`;
}

const sentenceOf = (error: unknown): string =>
  error instanceof SyntaxError ? "The server sent something unreadable." : "The server cannot be reached.";
