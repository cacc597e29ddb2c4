/**
 * Owns: one client's stream of one conversation (docs/http.md, Events): subscribe, then replay or snapshot, then
 * `synced`, then tail. Durable events are always read from the table by number. So none is missed or doubled, even if
 * notifications are lost.
 */
import { readEvents, lastEventOf } from "../../db/events.ts";
import { isUnavailable } from "../../db/errors.ts";
import type { LiveEvent, Unsubscribe } from "../../db/notifications.ts";
import { getConversation, readSnapshot, type Snapshot } from "../../db/views.ts";
import type { State } from "../../machine/conversation.ts";
import { withActions } from "../actions.ts";
import type { Deps } from "../deps.ts";
import { notFound } from "../problem.ts";
import type { Signal } from "./hub.ts";
import { SseWriter } from "./sse-writer.ts";

/** Messages of a snapshot. */
const SNAPSHOT_MESSAGES = 100;
/** Events of one page; the client takes a page before the next is read. */
const PAGE = 50;
/** Bytes that may wait in the writer before the next task has to wait for the client. */
const HIGH_WATER = 256 * 1024;
/** Bytes of live text that may wait among the tasks. A slower client is cut off, and resumes by number. */
const LIVE_LIMIT = 1024 * 1024;
/** Milliseconds until a failed query is repeated. */
const RETRY_MS = 500;

type Wanted = Pick<Deps, "db" | "hub" | "report"> & { readonly heartbeatMs?: number };

/**
 * Opens a stream.
 *
 * @param cursor as given by the client; null: none.
 * @throws Problem `not_found`; rejects when the database cannot be reached.
 */
export async function openConversationStream(
  deps: Wanted,
  id: string,
  cursor: string | null,
): Promise<SseWriter> {
  const stream = new ConversationStream(deps, id);
  try {
    await stream.open(cursor);
  } catch (error) {
    stream.writer.cut();
    throw error;
  }
  return stream.writer;
}

type Task = Signal | { readonly kind: "check" };

class ConversationStream {
  readonly writer: SseWriter;
  readonly #deps: Wanted;
  readonly #id: string;
  readonly #unwatch: Unsubscribe;
  #tasks: Task[] = [];
  #liveBytes = 0;
  #wake = (): void => undefined;
  #tailing = false;
  /** The number of the last event that was sent, or is in the snapshot. */
  #cursor = 0;
  /** The state as the client knows it. */
  #state: State = { kind: "idle" };

  constructor(deps: Wanted, id: string) {
    this.#deps = deps;
    this.#id = id;
    this.writer = new SseWriter(() => this.#add({ kind: "check" }), deps.heartbeatMs);
    // Subscribes before the first read, so that no later commit is missed.
    this.#unwatch = deps.hub.watch(id, (signal) => this.#add(signal));
    void this.writer.closed.then(() => {
      this.#unwatch();
      this.#wake();
    });
  }

  async open(cursor: string | null): Promise<void> {
    const { db } = this.#deps;
    if (cursor !== null) {
      const conversation = await getConversation(db, this.#id);
      if (conversation === null) throw notFound();
      const number = numberOf(cursor);
      if (number !== null && number <= conversation.lastEvent) {
        this.#cursor = number;
        // If the state has changed since this read, the change is among the events that follow.
        this.#state = conversation.state;
        void this.#run(null);
        return;
      }
    }
    const snapshot = await this.#snapshot();
    if (snapshot === null) throw notFound();
    if (cursor !== null) this.writer.send({ name: "resync", data: {} });
    void this.#run(snapshot);
  }

  async #run(snapshot: Snapshot | null): Promise<void> {
    try {
      if (snapshot !== null) this.#sendSnapshot(snapshot);
      else await this.#persist(() => this.#replay());
      this.#sendSynced();
      this.#tailing = true;
      for (let task = await this.#next(); task !== null; task = await this.#next()) {
        await this.#perform(task);
        if (this.writer.waiting > HIGH_WATER) await this.writer.drained();
      }
    } catch (error) {
      this.#deps.report(`stream of ${this.#id}`, error);
    } finally {
      this.writer.end();
    }
  }

  async #perform(task: Task): Promise<void> {
    switch (task.kind) {
      case "committed":
        if (task.lastEvent <= this.#cursor) return;
        // Replays no further: the next live text belongs between this event and those after it.
        await this.#persist(() => this.#replay(task.lastEvent));
        // The event is missing: the conversation is gone, or was restored to an earlier state.
        if (task.lastEvent > this.#cursor) await this.#persist(() => this.#check());
        return;
      case "deleted":
        this.#sendDeleted();
        return;
      case "live":
        this.#liveBytes -= Buffer.byteLength(task.event.data.text);
        if (isCurrent(this.#state, task.event)) this.writer.send(task.event);
        return;
      case "reconnected":
      case "check":
        await this.#persist(() => this.#check());
        return;
    }
  }

  /** Sends the events above the cursor; the client has to take a page before the next is read. Numbers have no gaps. */
  async #replay(last = Number.POSITIVE_INFINITY): Promise<void> {
    while (this.#cursor < last && this.writer.isOpen) {
      const limit = Math.min(PAGE, last - this.#cursor);
      const page = await readEvents(this.#deps.db, this.#id, this.#cursor, limit);
      for (const event of page) {
        const { name, data, number } = event;
        this.writer.send({ name, data: withActions(this.#id, event), number });
        this.#cursor = number;
        if (name === "state.changed") this.#state = data.state;
      }
      if (page.length < PAGE) return;
      await this.writer.drained();
    }
  }

  /**
   * Compares the cursor with the table, whatever notifications said. The conversation may be deleted, restored to an
   * earlier moment, or ahead.
   */
  async #check(): Promise<void> {
    const last = await lastEventOf(this.#deps.db, this.#id);
    if (last === null) {
      this.#sendDeleted();
      return;
    }
    if (last >= this.#cursor) return this.#replay();
    const snapshot = await this.#snapshot();
    if (snapshot === null) {
      this.#sendDeleted();
      return;
    }
    this.writer.send({ name: "resync", data: {} });
    this.#sendSnapshot(snapshot);
    this.#sendSynced();
  }

  /** Repeats a read that the database could not answer, as long as the client is connected. */
  async #persist(read: () => Promise<void>): Promise<void> {
    while (this.writer.isOpen) {
      try {
        await read();
        return;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await Promise.race([
          this.writer.closed,
          new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref()),
        ]);
      }
    }
  }

  #snapshot(): Promise<Snapshot | null> {
    const { db } = this.#deps;
    return readSnapshot(db, this.#id, SNAPSHOT_MESSAGES);
  }

  #sendSnapshot(snapshot: Snapshot): void {
    this.writer.send({ name: "snapshot", data: snapshot });
    this.#cursor = snapshot.lastEvent;
    this.#state = snapshot.conversation.state;
  }

  #sendSynced(): void {
    this.writer.send({ name: "synced", data: { lastEvent: this.#cursor } });
  }

  #sendDeleted(): void {
    this.writer.send({ name: "conversation.deleted", data: {} });
    this.writer.end();
  }

  #add(task: Task): void {
    if (task.kind === "live") {
      // Before `synced` the client does not know yet what the text belongs to.
      if (!this.#tailing) return;
      this.#liveBytes += Buffer.byteLength(task.event.data.text);
      if (this.#liveBytes > LIVE_LIMIT) return this.writer.cut();
    }
    // Only the newest of several consecutive commits matters. It must stay behind the live text that came before it.
    if (task.kind !== "live" && task.kind !== "deleted" && this.#tasks.at(-1)?.kind === task.kind)
      this.#tasks.pop();
    this.#tasks.push(task);
    this.#wake();
  }

  /** Waits for the next task; null when the stream is closed. */
  async #next(): Promise<Task | null> {
    while (this.#tasks.length === 0 && this.writer.isOpen) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.writer.isOpen ? (this.#tasks.shift() ?? null) : null;
  }
}

function numberOf(cursor: string): number | null {
  const number = /^\d{1,16}$/.test(cursor) ? Number(cursor) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}

/**
 * Live text travels beside the commits and may arrive late. Text of a request or call that has already ended for the
 * client would look as if it were new.
 */
function isCurrent(state: State, event: LiveEvent): boolean {
  switch (event.name) {
    case "text.delta":
    case "thinking.delta":
      return (
        (state.kind === "llm_requesting" || state.kind === "awaiting_continuation") &&
        state.requestId === event.data.requestId
      );
    case "tool.output":
      return (
        (state.kind === "tool_executing" || (state.kind === "cancelling" && state.stopping === "tool")) &&
        state.current.id === event.data.toolCallId
      );
  }
}
