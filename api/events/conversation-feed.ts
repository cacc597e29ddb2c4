/**
 * Owns: the events of one conversation for one client (docs/http.md, Events): subscribe, then replay or snapshot, then
 * `synced`, then tail. Durable events are always read from the table by number. So none is missed or doubled, even if
 * notifications are lost. Live text is told from its beginning.
 * Not here: the connection, which may carry several feeds (sse-writer.ts, combined-stream.ts).
 */
import { readEvents, lastEventOf } from "../../db/events.ts";
import { isUnavailable } from "../../db/errors.ts";
import type { LivePiece } from "../../db/live.ts";
import type { Unsubscribe } from "../../db/notifications.ts";
import { getConversation, readSnapshot, type Snapshot } from "../../db/views.ts";
import { runningIn, type State } from "../../machine/conversation.ts";
import { withActions } from "../actions.ts";
import type { Deps } from "../deps.ts";
import { notFound, Problem } from "../problem.ts";
import type { Signal } from "./hub.ts";
import { LiveProgress } from "./live-progress.ts";
import type { ServerSentEvent } from "./sse-writer.ts";

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

/** The client's connection. */
export type Sink = {
  readonly isOpen: boolean;
  readonly closed: Promise<void>;
  /** Bytes that the client has not taken yet. */
  readonly waiting: number;
  send(event: ServerSentEvent): void;
  /** Resolves when the client has taken all, or is gone. */
  drained(): Promise<void>;
  /** Ends the connection of a client that is too slow. */
  cut(): void;
};

type Task = Signal | { readonly kind: "check" };

export class ConversationFeed {
  /** Resolves when the feed has ended: the conversation was removed, or the client is gone or has closed the feed. */
  readonly ended: Promise<void>;
  readonly #deps: Pick<Deps, "db" | "hub" | "report">;
  readonly #id: string;
  readonly #sink: Sink;
  readonly #unwatch: Unsubscribe;
  readonly #live = new LiveProgress();
  #resolveEnded = (): void => undefined;
  #isOpen = true;
  #tasks: Task[] = [];
  #liveBytes = 0;
  #wake = (): void => undefined;
  #tailing = false;
  /** The number of the last event that was sent, or is in the snapshot. */
  #cursor = 0;
  /** The state as the client knows it. */
  #state: State = { kind: "idle" };

  constructor(deps: Pick<Deps, "db" | "hub" | "report">, id: string, sink: Sink) {
    this.#deps = deps;
    this.#id = id;
    this.#sink = sink;
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve));
    // Subscribes before the first read, so that no later commit is missed.
    this.#unwatch = deps.hub.watch(id, (signal) => this.#add(signal));
    void sink.closed.then(() => this.close());
  }

  /**
   * Sends what the client lacks, then goes on live.
   *
   * @param cursor as given by the client; null: none.
   * @throws Problem `not_found`; rejects when the database cannot be reached. The feed is closed then.
   */
  async open(cursor: string | null): Promise<void> {
    try {
      await this.#open(cursor);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * The same for a conversation that may begin later, as a sub-agent does: that it is not there is told as a removal,
   * and its beginning by a snapshot.
   *
   * @throws nothing but what `open` throws for a database that cannot be reached
   */
  async follow(cursor: string | null): Promise<void> {
    try {
      await this.#open(cursor);
    } catch (error) {
      if (error instanceof Problem && error.code === "not_found") {
        this.#send({ name: "conversation.deleted", data: {} });
        void this.#begin();
        return;
      }
      this.close();
      throw error;
    }
  }

  /** Compares with the table, in case that a notification was lost. */
  check(): void {
    this.#add({ kind: "check" });
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#unwatch();
    this.#wake();
    this.#resolveEnded();
  }

  async #open(cursor: string | null): Promise<void> {
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
    if (cursor !== null) this.#send({ name: "resync", data: {} });
    void this.#run(snapshot);
  }

  /** Commits were watched from before the first read, so the one that makes the conversation is not missed. */
  async #begin(): Promise<void> {
    try {
      while ((await this.#next()) !== null) {
        const snapshot = await this.#persist(() => this.#snapshot());
        if (snapshot !== null) {
          await this.#run(snapshot);
          return;
        }
      }
    } catch (error) {
      this.#deps.report(`stream of ${this.#id}`, error);
      this.close();
    }
  }

  async #run(snapshot: Snapshot | null): Promise<void> {
    try {
      if (snapshot !== null) this.#sendSnapshot(snapshot);
      else await this.#persist(() => this.#replay());
      this.#sendSynced();
      this.#tailing = true;
      this.#askAgain();
      for (let task = await this.#next(); task !== null; task = await this.#next()) {
        await this.#perform(task);
        if (this.#sink.waiting > HIGH_WATER) await this.#sink.drained();
      }
    } catch (error) {
      this.#deps.report(`stream of ${this.#id}`, error);
    } finally {
      this.close();
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
        this.#liveBytes -= Buffer.byteLength(task.piece.event.data.text);
        this.#sendLive(task.piece);
        return;
      case "reconnected":
        await this.#persist(() => this.#check());
        this.#askAgain();
        return;
      case "check":
        await this.#persist(() => this.#check());
        return;
    }
  }

  /**
   * Live text travels beside the commits and may arrive late, or not at all. Text of a request or call that has already
   * ended for the client would look as if it were new.
   */
  #sendLive(piece: LivePiece): void {
    const progress = this.#live.take(this.#state, piece);
    if (progress.kind === "new") this.#send(progress.event);
    if (progress.kind === "missed") this.#askAgain();
  }

  #askAgain(): void {
    if (runningIn(this.#state) !== null) this.#deps.hub.askAgain(this.#id);
  }

  /** Sends the events above the cursor; the client has to take a page before the next is read. Numbers have no gaps. */
  async #replay(last = Number.POSITIVE_INFINITY): Promise<void> {
    while (this.#cursor < last && this.#isOpen) {
      const limit = Math.min(PAGE, last - this.#cursor);
      const page = await readEvents(this.#deps.db, this.#id, this.#cursor, limit);
      for (const event of page) {
        const { name, data, number } = event;
        this.#send({ name, data: withActions(this.#id, event), number });
        this.#cursor = number;
        if (name === "state.changed") this.#state = data.state;
      }
      if (page.length < PAGE) return;
      await this.#sink.drained();
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
    this.#send({ name: "resync", data: {} });
    this.#sendSnapshot(snapshot);
    this.#sendSynced();
  }

  /** Repeats a read that the database could not answer, as long as the client is connected; null: it is not. */
  async #persist<T>(read: () => Promise<T>): Promise<T | null> {
    while (this.#isOpen) {
      try {
        return await read();
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await Promise.race([this.ended, new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref())]);
      }
    }
    return null;
  }

  #snapshot(): Promise<Snapshot | null> {
    const { db } = this.#deps;
    return readSnapshot(db, this.#id, SNAPSHOT_MESSAGES);
  }

  #sendSnapshot(snapshot: Snapshot): void {
    this.#send({ name: "snapshot", data: snapshot });
    this.#cursor = snapshot.lastEvent;
    this.#state = snapshot.conversation.state;
  }

  #sendSynced(): void {
    this.#send({ name: "synced", data: { lastEvent: this.#cursor } });
  }

  #sendDeleted(): void {
    this.#send({ name: "conversation.deleted", data: {} });
    this.close();
  }

  #add(task: Task): void {
    if (task.kind === "live") {
      // Before `synced` the client does not know yet what the text belongs to.
      if (!this.#tailing) return;
      this.#liveBytes += Buffer.byteLength(task.piece.event.data.text);
      if (this.#liveBytes > LIVE_LIMIT) return this.#sink.cut();
    }
    // Only the newest of several consecutive commits matters. It must stay behind the live text that came before it.
    if (task.kind !== "live" && task.kind !== "deleted" && this.#tasks.at(-1)?.kind === task.kind)
      this.#tasks.pop();
    this.#tasks.push(task);
    this.#wake();
  }

  /** Waits for the next task; null when the stream is closed. */
  async #next(): Promise<Task | null> {
    while (this.#tasks.length === 0 && this.#isOpen) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#isOpen ? (this.#tasks.shift() ?? null) : null;
  }

  #send(event: ServerSentEvent): void {
    if (this.#isOpen) this.#sink.send(event);
  }
}

function numberOf(cursor: string): number | null {
  const number = /^\d{1,16}$/.test(cursor) ? Number(cursor) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}
