/**
 * Owns: one connection that carries the list and any number of conversations (docs/http.md, "One stream for many"), so
 * that a client with many tabs needs one. Conversations are opened and closed while it is open. Each event says what it
 * belongs to, and from where to go on.
 */
import { randomUUID } from "node:crypto";
import type { Unsubscribe } from "../../db/notifications.ts";
import type { Opening, StreamChange } from "../../db/orders.ts";
import type { Deps } from "../deps.ts";
import { ConversationFeed, type Sink } from "./conversation-feed.ts";
import type { ListFeed } from "./list-feed.ts";
import { SseWriter } from "./sse-writer.ts";

/** Conversations of one stream. */
const MAX_OPEN = 200;
/** Bytes that may wait while facts of the list are sent; the feeds of conversations wait for the client themselves. */
const WAITING_LIMIT = 4 * 1024 * 1024;
/** Milliseconds until a conversation is opened again that the database could not show. */
const RETRY_MS = 500;

type Wanted = Pick<Deps, "db" | "hub" | "report" | "heartbeatMs">;

export class CombinedStream {
  readonly id = randomUUID();
  readonly writer: SseWriter;
  readonly #deps: Wanted;
  readonly #feeds = new Map<string, ConversationFeed>();

  constructor(deps: Wanted) {
    this.#deps = deps;
    this.writer = new SseWriter(() => {
      for (const feed of this.#feeds.values()) feed.check();
    }, deps.heartbeatMs);
    this.writer.send({ name: "stream.opened", data: { streamId: this.id } });
  }

  /** @param cursor of the list; null: none. Rejects when the database cannot be reached. */
  async openList(list: ListFeed, cursor: string | null): Promise<void> {
    const close: Unsubscribe = await list.open(cursor, (event) => {
      const { name, cursor: next, data } = event;
      this.writer.send({ name, data: { conversationId: null, cursor: next, data } });
      if (this.writer.waiting > WAITING_LIMIT) this.writer.cut();
    });
    void this.writer.closed.then(close);
  }

  change({ open, close }: StreamChange): void {
    for (const id of close) this.#close(id);
    for (const opening of open) void this.#open(opening);
  }

  #close(id: string): void {
    this.#feeds.get(id)?.close();
    this.#feeds.delete(id);
  }

  async #open({ id, cursor }: Opening): Promise<void> {
    this.#close(id);
    if (this.#feeds.size >= MAX_OPEN) {
      this.writer.send({ name: "stream.full", data: { conversationId: id, most: MAX_OPEN } });
      return;
    }
    const feed = new ConversationFeed(this.#deps, id, this.#sinkOf(id));
    this.#feeds.set(id, feed);
    try {
      await feed.follow(cursor);
      await feed.ended;
    } catch {
      // The database could not be read. The client may close the conversation meanwhile, or open it anew.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      if (this.writer.isOpen && this.#feeds.get(id) === feed) return this.#open({ id, cursor });
    }
    if (this.#feeds.get(id) === feed) this.#feeds.delete(id);
  }

  /** Says of each event what it belongs to. */
  #sinkOf(conversationId: string): Sink {
    const { writer } = this;
    return {
      get isOpen() {
        return writer.isOpen;
      },
      get waiting() {
        return writer.waiting;
      },
      closed: writer.closed,
      drained: () => writer.drained(),
      cut: () => writer.cut(),
      send: ({ name, data, number }) => {
        const cursor = number === undefined ? cursorIn(name, data) : String(number);
        writer.send({ name, data: { conversationId, cursor, data } });
      },
    };
  }
}

/** A snapshot and `synced` say from where to go on, too. */
function cursorIn(name: string, data: unknown): string | null {
  if (name !== "snapshot" && name !== "synced") return null;
  return String((data as { readonly lastEvent: number }).lastEvent);
}
